"""Prints the versions of the peer's libraries as one JSON object."""
import json

import torch
import transformers

print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__}))
