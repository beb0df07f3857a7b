// What every entry into JavaScript is made of. See v8x.h for the calls that Go makes.
#pragma once
#include "state.h"

namespace v8x {

// Ops of the entry function that C++ calls by itself; isolates/js/runtime/ops.js has them all.
constexpr double kOpModule = 1, kOpUnhandled = 11, kOpDescribe = 12, kOpHandled = 17, kOpBuiltin = 29;

// An isolate locked and entered, with a handle scope. Not for nesting.
class Entered {
 public:
  explicit Entered(v8::Isolate* i) : locker_(i), isolate_(i), handles_(i) {}

 private:
  // Leaves the isolate after the handle scope is gone and before the lock is.
  struct Enter {
    explicit Enter(v8::Isolate* i) : isolate(i) { isolate->Enter(); }
    ~Enter() { isolate->Exit(); }
    v8::Isolate* isolate;
  };
  v8::Locker locker_;
  Enter isolate_;
  v8::HandleScope handles_;
};

// One entry into a context: locks and enters the isolate, and makes the context current. The continuation data of V8
// does not pass from it to the next. Not for nesting.
class Turn {
 public:
  explicit Turn(v8x_context*);
  ~Turn();

 private:
  Entered entered_;
  v8::Isolate* isolate_;
  v8::Local<v8::Value> frame_;  // V8's continuation data before the turn
  v8::Local<v8::Context> context_;
};

inline v8::Local<v8::Context> ContextOf(v8x_context* c) { return v8::Local<v8::Context>(c->context); }

inline Constants ConstantsOf(v8x_context* c) {
  v8::Address** k = c->owner->constants;
  return Constants{v8::Local<v8::Value>(k[0]), v8::Local<v8::Value>(k[1]), v8::Local<v8::Value>(k[2])};
}

// Calls the entry function; result, unless null, gets what it returns.
bool CallEntry(v8x_context*, int argc, v8::Local<v8::Value>* argv, v8::Local<v8::Value>* result = nullptr);

// Tells the runtime of rejections that this turn left unhandled.
void ReportRejections(v8x_context*);

// What every call ends with.
void Finish(v8x_context*, const v8::TryCatch& caught, v8x_result*);

// V8 asks them for import() and import.meta: module.cc.
v8::MaybeLocal<v8::Promise> RejectImport(v8::Local<v8::Context>, v8::Local<v8::Data>, v8::Local<v8::Value>,
                                         v8::Local<v8::String> specifier, v8::Local<v8::FixedArray>);
void DescribeModule(v8::Local<v8::Context>, v8::Local<v8::Module>, v8::Local<v8::Object> meta);

// Collects the rejections that ReportRejections reports.
void OnReject(v8::PromiseRejectMessage);

// Somebody has seen to the promise: it is not reported.
bool ForgetRejection(v8x_context*, v8::Local<v8::Promise>);

}  // namespace v8x
