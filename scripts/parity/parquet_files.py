#!/usr/bin/env python3
"""Writes tests/golden/parquet: small Parquet files of several writers, and beside each the rows that
pyarrow reads from it, as JSON Lines. Also the seeds of the fuzz target that reads Parquet.

    parquet_files.py GOLDEN      (the folder tests/golden)

Needs pyarrow, polars, duckdb, pandas and fastparquet. What Hearth leaves out of rows (LEFT_OUT) is
left out here, too.
"""
import datetime
import decimal
import json
import math
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LEFT_OUT = {"day", "moment", "price", "digest", "clock"}
CHATS = [
    [("system", "Answer in one word."), ("user", "2+2?"), ("assistant", "4")],
    [("user", "Grüße, 世界 🙂\n\"quoted\"\t\\"), ("assistant", "")],
    [],
    None,
    [("user", None), None, ("assistant", "a null before")],
    [("user", "x" * 300), ("assistant", "y" * 300)],
]
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


def chats(copies=1):
    rows = [c and [m and dict(zip(("role", "content"), m)) for m in c] for c in CHATS] * copies
    return pa.table({"messages": pa.array(rows, MESSAGES),
                     "source": pa.array(["a", None, "b", "a", "a", "b"] * copies)})


def ids():
    rows = [[(17 * i * j) % 50000 for j in range(i % 40)] for i in range(60)]
    labels = [[-100] * (len(r) // 2) + r[len(r) // 2:] for r in rows]
    masks = [[1] * len(r) for r in rows]
    return pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32())),
                     "labels": pa.array(labels, pa.list_(pa.int64())),
                     "attention_mask": pa.array(masks, pa.large_list(pa.int8()))})


def texts(count=200):
    words = ["alpha", "beta", "", "gamma delta", None, "Straße", "a" * 40]
    return pa.table({"text": pa.array([words[i * i % 7] for i in range(count)]),
                     "number": pa.array([f"row {i}" for i in range(count)], pa.large_string())})


def numbers():
    count = 40
    table = {}
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        top = 2 ** (kind.bit_width - 1)
        table[str(kind)] = pa.array([(-top, top - 1, 0, None, i)[i % 5] for i in range(count)], kind)
    for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        top = 2 ** kind.bit_width
        table[str(kind)] = pa.array([(0, top - 1, i, None)[i % 4] for i in range(count)], kind)
    table["single"] = pa.array([None if i % 7 == 3 else i / 3 for i in range(count)], pa.float32())
    table["double"] = pa.array([(1e300, -0.1, math.nan, math.inf, i * 1.5)[i % 5]
                                for i in range(count)], pa.float64())
    table["flag"] = pa.array([(True, False, None, True)[i % 4] for i in range(count)])
    table["sure"] = pa.array([i % 3 == 0 for i in range(count)])
    table["nothing"] = pa.nulls(count)
    return pa.table(table)


def deep():
    inner = pa.struct([("name", pa.string()), ("values", pa.list_(pa.list_(pa.int32())))])
    schema = pa.schema([
        ("grid", pa.list_(pa.list_(pa.list_(pa.int64())))),
        ("call", pa.struct([("function", inner), ("tags", pa.list_(pa.string()))])),
        ("calls", pa.list_(pa.struct([("function", inner), ("id", pa.int32())]))),
        ("arguments", pa.map_(pa.string(), pa.string())),
        ("by_number", pa.map_(pa.int32(), pa.list_(pa.string()))),
        ("pair", pa.list_(pa.int32(), 2)),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
    ])
    f = {"name": "f", "values": [[1, 2], [], None, [3, None]]}
    rows = [
        {"grid": [[[1], []], [], [[2, None, 3]]], "call": {"function": f, "tags": ["a", None]},
         "calls": [{"function": f, "id": 1}, {"function": None, "id": None}, None],
         "arguments": [("city", "Bonn"), ("unit", None)], "by_number": [(1, ["a"]), (2, None)],
         "pair": [1, 2], "kind": "tool"},
        {"grid": None, "call": None, "calls": [], "arguments": [], "by_number": [], "pair": None,
         "kind": None},
        {"grid": [], "call": {"function": None, "tags": None}, "calls": None, "arguments": None,
         "by_number": None, "pair": [None, 4], "kind": "user"},
        {"grid": [None, [None], [[]]], "call": {"function": {"name": None, "values": []},
                                                "tags": []},
         "calls": [{"function": {"name": "g", "values": None}, "id": 7}],
         "arguments": [("a", "")], "by_number": [(-1, [])], "pair": [5, 6], "kind": "tool"},
    ]
    return pa.Table.from_pylist(rows * 3, schema)


def left_out():
    return pa.table({
        "prompt": ["a", "b"], "completion": ["c", "d"],
        "day": [datetime.date(2024, 1, 2), None],
        "moment": [datetime.datetime(2024, 1, 2, 3), None],
        "clock": pa.array([datetime.time(1), None]),
        "price": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(9, 2)),
        "digest": pa.array([b"12345678", None], pa.binary(8)),
        "raw": pa.array([b"plain", b"\xff\xfe"], pa.binary()),
    })


def value_of(value, kind):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if pa.types.is_struct(kind):
        return {f.name: value_of(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        pairs = [(k, value_of(v, kind.item_type)) for k, v in value]
        if pa.types.is_string(kind.key_type):
            return dict(pairs)
        return [{"key": k, "value": v} for k, v in pairs]
    if isinstance(value, list):
        return [value_of(v, kind.value_type) for v in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value


def rows_of(path):
    table = pq.ParquetFile(path).read()
    for row in table.to_pylist():
        yield {f.name: value_of(row[f.name], f.type) for f in table.schema
               if f.name not in LEFT_OUT}


def write_with_pyarrow(out):
    def write(name, table, **options):
        options = {"store_schema": False, "use_dictionary": True, "compression": "none",
                   "write_statistics": False, **options}
        pq.write_table(table, out / f"{name}.parquet", **options)

    codecs = ("none", "snappy", "gzip", "zstd")
    for i, codec in enumerate(codecs):
        for version in ("1.0", "2.0"):
            v = version[0]
            write(f"chat_v{v}_{codec}", chats(2), compression=codec, data_page_version=version,
                  use_dictionary=(i + int(v)) % 2 == 0, row_group_size=5,
                  write_page_checksum=i % 2 == 0)
    write("chat_statistics", chats(), write_statistics=True, write_page_index=True,
          store_schema=True)
    write("chat_old_names", chats(), use_compliant_nested_type=False)
    for v in ("1.0", "2.0"):
        # Rows of version 1 may go on in the next page.
        write(f"ids_v{v[0]}", ids(), compression="zstd", data_page_version=v, data_page_size=64,
              write_batch_size=7, row_group_size=25)
        write(f"numbers_v{v[0]}", numbers(), data_page_version=v, compression="snappy")
        write(f"deep_v{v[0]}", deep(), data_page_version=v, data_page_size=32, write_batch_size=3)
        # A dictionary that grows too large: the pages that follow are plain.
        write(f"fallback_v{v[0]}", texts(), data_page_version=v, dictionary_pagesize_limit=256,
              write_batch_size=16, data_page_size=128)
    write("plain", texts(40), use_dictionary=False, compression="gzip")
    write("delta", pa.concat_tables([texts(300).append_column(
              "n", pa.array([None if i % 9 == 4 else (i * i * 2654435761) % 2 ** 40 - 2 ** 39
                             for i in range(300)])).append_column(
              "m", pa.array([i // 3 for i in range(300)], pa.int32())).append_column(
              "wide", pa.array([i * 0x9e3779b97f4a7c15 % 2 ** 60 for i in range(300)]))]),
          use_dictionary=False, data_page_size=512, write_batch_size=50,
          column_encoding={"text": "DELTA_BYTE_ARRAY", "number": "DELTA_LENGTH_BYTE_ARRAY",
                           "n": "DELTA_BINARY_PACKED", "m": "DELTA_BINARY_PACKED",
                           "wide": "DELTA_BINARY_PACKED"})
    write("delta_bytes", texts(60), use_dictionary=False, data_page_version="2.0",
          column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY", "number": "DELTA_BYTE_ARRAY"})
    write("split", numbers().select(["single", "double", "int32", "int64"]), use_dictionary=False,
          column_encoding={c: "BYTE_STREAM_SPLIT" for c in ("single", "double", "int32", "int64")})
    write("left_out", left_out())
    write("no_rows", chats().slice(0, 0))
    with pq.ParquetWriter(out / "empty_group.parquet", texts().schema, compression="none") as w:
        w.write_table(texts(3))
        w.write_table(texts(3).slice(0, 0))
        w.write_table(texts(3).slice(1))
    for codec in ("brotli", "lz4"):
        write(f"refused_{codec}", texts(3), compression=codec)


def write_with_others(out):
    import duckdb
    import fastparquet
    import polars

    polars.from_arrow(chats(2)).write_parquet(out / "polars_zstd.parquet", compression="zstd",
                                              row_group_size=5)
    polars.from_arrow(texts(30)).write_parquet(out / "polars_snappy.parquet", compression="snappy")
    source = chats(2)
    for codec in ("snappy", "zstd"):
        duckdb.sql("SELECT * FROM source").write_parquet(
            str(out / f"duckdb_{codec}.parquet"), compression=codec)
    duckdb.execute("COPY (SELECT i, 'row ' || i AS name, [i, i + 1] AS input_ids "
                   "FROM range(300) t(i)) TO '%s' (FORMAT parquet, PARQUET_VERSION v2)"
                   % (out / "duckdb_v2.parquet"))
    for codec in ("SNAPPY", "GZIP"):
        frame = texts(30).to_pandas()
        frame["n"] = range(30)
        fastparquet.write(str(out / f"fastparquet_{codec.lower()}.parquet"), frame,
                          compression=codec, row_group_offsets=[0, 20], stats=False)


SEEDS = ["chat_v1_none", "chat_v2_snappy", "ids_v1", "numbers_v2", "deep_v2", "delta_bytes", "split",
         "plain", "left_out", "fastparquet_snappy"]


def main(golden):
    out, seeds = golden / "parquet", golden / "fuzz" / "parquet"
    for folder in (out, seeds):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    write_with_pyarrow(out)
    write_with_others(out)
    for path in sorted(out.glob("*.parquet")):
        if not path.name.startswith("refused_"):
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(path)]
            path.with_suffix(".jsonl").write_text("".join(lines))
    for name in SEEDS:
        shutil.copy(out / f"{name}.parquet", seeds / name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
