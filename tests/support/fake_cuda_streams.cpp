// The functions of the fake runtime that queue work and wait for it.
#include "support/fake_cuda_impl.h"

namespace hearth::test {

CudaCode enqueue_on_fake_stream(void* stream, std::function<void()> work) {
  auto& impl = *static_cast<FakeCuda::Impl*>(static_cast<FakeStream*>(stream)->runtime);
  const std::lock_guard lock(impl.mutex);
  if (const CudaCode code = impl.begin("launch")) return code;
  FakeStream* own = impl.stream_of(stream);
  if (own == nullptr || own->device != impl.device()) {
    return impl.done(kInvalidHandle);
  }
  impl.queue(*own, std::move(work));
  return kCudaOk;
}

CudaCode FakeCuda::priority_range(int* lowest, int* highest) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("priority_range")) return code;
  *lowest = 0;
  *highest = -5;
  return kCudaOk;
}

CudaCode FakeCuda::stream_create(void** stream, int priority) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("stream_create")) return code;
  auto made = std::make_unique<FakeStream>();
  made->runtime = impl_.get();
  made->device = impl_->device();
  made->priority = priority;
  *stream = made.get();
  impl_->queues.streams.push_back(std::move(made));
  return kCudaOk;
}

CudaCode FakeCuda::stream_destroy(void* stream) {
  const std::lock_guard lock(impl_->mutex);
  const CudaCode code = impl_->begin("stream_destroy");
  FakeStream* own = impl_->stream_of(stream);
  if (own == nullptr) return impl_->done(kInvalidHandle);
  impl_->queues.advance(*own, nullptr);
  std::erase_if(impl_->queues.streams, [&](const auto& s) { return s.get() == own; });
  return code;
}

CudaCode FakeCuda::stream_synchronize(void* stream) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("stream_synchronize")) return code;
  FakeStream* own = impl_->stream_of(stream);
  if (own == nullptr) return impl_->done(kInvalidHandle);
  impl_->queues.advance(*own, nullptr);
  return impl_->broken;
}

CudaCode FakeCuda::stream_wait_event(void* stream, void* event) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("stream_wait_event")) return code;
  FakeStream* own = impl_->stream_of(stream);
  const FakeEvent* waited = impl_->event_of(event);
  if (own == nullptr || waited == nullptr) return impl_->done(kInvalidHandle);
  if (!waited->last) return kCudaOk;  // as CUDA: never recorded is reached
  FakeItem item;
  item.wait = waited->last;
  own->items.push_back(std::move(item));
  return kCudaOk;
}

CudaCode FakeCuda::event_create(void** event, bool timed) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("event_create")) return code;
  auto made = std::make_unique<FakeEvent>();
  made->device = impl_->device();
  made->timed = timed;
  *event = made.get();
  impl_->events.emplace(*event, std::move(made));
  return kCudaOk;
}

CudaCode FakeCuda::event_destroy(void* event) {
  const std::lock_guard lock(impl_->mutex);
  const CudaCode code = impl_->begin("event_destroy");
  return impl_->events.erase(event) == 1 ? code : impl_->done(kInvalidHandle);
}

CudaCode FakeCuda::event_record(void* event, void* stream) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("event_record")) return code;
  FakeStream* own = impl_->stream_of(stream);
  FakeEvent* recorded = impl_->event_of(event);
  if (own == nullptr || recorded == nullptr || own->device != recorded->device) {
    return impl_->done(kInvalidHandle);
  }
  recorded->last = std::make_shared<FakeRecord>();
  recorded->last->stream = own;
  FakeItem item;
  item.record = recorded->last;
  own->items.push_back(std::move(item));
  return kCudaOk;
}

CudaCode FakeCuda::event_synchronize(void* event) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("event_synchronize")) return code;
  const FakeEvent* own = impl_->event_of(event);
  if (own == nullptr) return impl_->done(kInvalidHandle);
  const std::shared_ptr<FakeRecord> last = own->last;
  if (last && !last->reached) impl_->queues.advance(*last->stream, last.get());
  return impl_->broken;
}

CudaCode FakeCuda::event_query(void* event) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("event_query")) return code;
  const FakeEvent* own = impl_->event_of(event);
  if (own == nullptr) return impl_->done(kInvalidHandle);
  if (!own->last) return kCudaOk;  // as CUDA: never recorded is reached
  impl_->queues.stir();            // work goes on while the host looks
  return own->last->reached ? impl_->broken : impl_->done(kCudaNotReady);
}

CudaCode FakeCuda::event_elapsed(float* milliseconds, void* begin, void* end) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("event_elapsed")) return code;
  const FakeEvent* from = impl_->event_of(begin);
  const FakeEvent* to = impl_->event_of(end);
  if (from == nullptr || to == nullptr || !from->timed || !to->timed || !from->last || !to->last ||
      !from->last->reached || !to->last->reached) {
    return impl_->done(kInvalidHandle);
  }
  *milliseconds = static_cast<float>(1e3 * (to->last->seconds - from->last->seconds));
  return kCudaOk;
}

CudaCode FakeCuda::copy(void* target, const void* source, size_t bytes, void* stream) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("copy")) return code;
  FakeStream* own = impl_->stream_of(stream);
  if (own == nullptr || own->device != impl_->device()) return impl_->done(kInvalidHandle);
  const int to = impl_->memory.owner(target), from = impl_->memory.owner(source);
  if ((to >= 0 && to != own->device) || (from >= 0 && from != own->device)) {
    return impl_->done(kInvalidValue);
  }
  return impl_->done(impl_->queue_copy(target, to, source, from, bytes, *own));
}

CudaCode FakeCuda::copy_peer(void* target, int target_device, const void* source, int source_device,
                             size_t bytes, void* stream) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("copy_peer")) return code;
  FakeStream* own = impl_->stream_of(stream);
  if (own == nullptr || own->device != impl_->device()) return impl_->done(kInvalidHandle);
  const int to = impl_->memory.owner(target), from = impl_->memory.owner(source);
  if (to != target_device || from != source_device) return impl_->done(kInvalidValue);
  return impl_->done(impl_->queue_copy(target, to, source, from, bytes, *own));
}

CudaCode FakeCuda::fill(void* target, int value, size_t bytes, void* stream) {
  const std::lock_guard lock(impl_->mutex);
  if (const CudaCode code = impl_->begin("fill")) return code;
  FakeStream* own = impl_->stream_of(stream);
  if (own == nullptr || own->device != impl_->device()) return impl_->done(kInvalidHandle);
  if (impl_->memory.owner(target) != own->device || !impl_->memory.holds(target, bytes)) {
    return impl_->done(kInvalidValue);
  }
  impl_->queue(*own, [target, value, bytes] { std::memset(target, value, bytes); });
  return kCudaOk;
}

}  // namespace hearth::test
