#include "turn.h"

using v8::Local;

namespace v8x {

namespace {

// How many unhandled rejections of one turn are reported one by one.
constexpr int kMaxRejections = 100;

}  // namespace

Turn::Turn(v8x_context* c)
    : entered_(c->owner->isolate),
      isolate_(c->owner->isolate),
      frame_(isolate_->GetContinuationPreservedEmbedderData()),
      context_(c->context) {
  context_->Enter();
  current = c;
  c->owner->out.Clear();
  c->owner->error.clear();
}

Turn::~Turn() {
  current = nullptr;
  isolate_->SetContinuationPreservedEmbedderData(frame_);  // a turn that was terminated leaves its own
  context_->Exit();
}

bool CallEntry(v8x_context* c, int argc, Local<v8::Value>* argv, Local<v8::Value>* result) {
  if (!c->entry) return false;
  Local<v8::Value> ignored;
  return Local<v8::Function>(c->entry)
      ->Call(c->owner->isolate, ContextOf(c), ConstantsOf(c).null, argc, argv)
      .To(result ? result : &ignored);
}

void ReportRejections(v8x_context* c) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Value> none = isolate->GetContinuationPreservedEmbedderData();
  int told = 0;
  while (!c->rejections.empty()) {
    auto batch = std::move(c->rejections);
    c->rejections.clear();
    for (auto& r : batch) {
      if (told++ < kMaxRejections) {
        Local<v8::Value> argv[3] = {v8::Number::New(isolate, r.reason ? kOpUnhandled : kOpHandled),
                                    Local<v8::Value>(r.promise), Local<v8::Value>(r.reason)};
        if (r.frame) isolate->SetContinuationPreservedEmbedderData(Local<v8::Value>(r.frame));
        CallEntry(c, r.reason ? 3 : 2, argv);
        if (r.frame) isolate->SetContinuationPreservedEmbedderData(none);
      }
      DropRejection(&r);
    }
  }
}

// Drops the microtasks that a terminated turn has left. They are in a queue of the isolate: otherwise the next turn of
// another context runs them as its own. V8 drops all microtasks when it terminates one.
void DropMicrotasks(v8::Isolate* isolate) {
  isolate->CancelTerminateExecution();  // V8 looks at the queue only then
  isolate->TerminateExecution();
  isolate->PerformMicrotaskCheckpoint();
  isolate->CancelTerminateExecution();
}

void Finish(v8x_context* c, const v8::TryCatch& caught, v8x_result* r) {
  v8x_isolate* owner = c->owner;
  if (caught.HasCaught() && !caught.HasTerminated()) owner->error = Describe(owner->isolate, ContextOf(c), caught);
  r->terminated = caught.HasTerminated() || owner->isolate->IsExecutionTerminating();
  r->threw = caught.HasCaught() && !caught.HasTerminated();
  r->error = owner->error.c_str();
  r->out = owner->out.data();
  r->out_len = owner->out.size();
  if (r->terminated) DropMicrotasks(owner->isolate);
}

void OnReject(v8::PromiseRejectMessage m) {
  v8x_context* c = current;
  if (!c) return;
  if (m.GetEvent() == v8::kPromiseRejectWithNoHandler) {
    if (c->rejections.size() >= 1000) return;  // a storm: what is lost is only its report
    v8::Isolate* isolate = c->owner->isolate;
    Local<v8::Value> frame = isolate->GetContinuationPreservedEmbedderData();
    c->rejections.push_back({NewGlobal(isolate, m.GetPromise()), NewGlobal(isolate, m.GetValue()),
                             frame->FullIsUndefined() ? nullptr : NewGlobal(isolate, frame)});
  } else if (m.GetEvent() == v8::kPromiseHandlerAddedAfterReject) {
    if (ForgetRejection(c, m.GetPromise()) || c->rejections.size() >= 1000) return;
    c->rejections.push_back({NewGlobal(c->owner->isolate, m.GetPromise()), nullptr, nullptr});
  }
}

bool ForgetRejection(v8x_context* c, Local<v8::Promise> promise) {
  for (size_t i = c->rejections.size(); i-- > 0;) {
    if (*c->rejections[i].promise != *promise.slot()) continue;
    DropRejection(&c->rejections[i]);
    c->rejections.erase(c->rejections.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }
  return false;
}

}  // namespace v8x

using namespace v8x;

extern "C" {

void v8x_call(v8x_context* c, const uint8_t* in, size_t in_len, const uint8_t* body, size_t body_len, v8x_result* r) {
  Turn turn(c);
  v8::Isolate* isolate = c->owner->isolate;
  v8::TryCatch caught(isolate);
  Constants constants = ConstantsOf(c);
  Reader reader(isolate, constants, in, in_len, body, body_len);
  constexpr int kMaxArgs = 256;
  Local<v8::Value> argv[kMaxArgs];
  int argc = reader.Byte();
  for (int i = 0; i < argc && reader.ok(); i++) argv[i] = reader.Value();
  if (reader.ok()) {
    CallEntry(c, argc, argv);
    if (!caught.HasCaught() && !c->rejections.empty()) ReportRejections(c);
  }
  Finish(c, caught, r);
  if (!reader.ok()) {
    c->owner->error = "no memory in the isolate for the event";
    r->error = c->owner->error.c_str();
    r->threw = 1;
  }
}

void v8x_answer(v8x_context* c, const uint8_t* bytes, size_t len, int is_error) {
  c->answer.assign(bytes, bytes + len);
  c->answer_is_error = is_error != 0;
}

}  // extern "C"
