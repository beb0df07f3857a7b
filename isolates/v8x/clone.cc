// host.clone: structuredClone by V8's own serializer and deserializer. What V8 cannot know, because platform objects are
// made by JavaScript here, it asks a function of isolates/js/dom/structured_clone.js. host.serialize and host.deserialize
// are the two halves, for a value that goes to another context.
#include "natives.h"
#include "state.h"
#include "v8abi_serializer.h"

#include <cstdlib>
#include <cstring>

namespace v8x {

using v8::Local;
using Info = v8::FunctionCallbackInfo<v8::Value>;

namespace {

// The questions to the hook; dom/structured_clone.js has the same.
enum Question {
  kError,   // message → the error to throw
  kIsHost,  // object → whether kCopy copies it; throws when it cannot be cloned
  kCopy,    // object → its copy
  kMove,    // – → Array of the buffers that take the place of those transferred
};

// One call of host.clone.
class Cloning final : public v8::ValueSerializer::Delegate, public v8::ValueDeserializer::Delegate {
 public:
  Cloning(Local<v8::Value> value, Local<v8::Array> transfer, Local<v8::Value> prototype, Local<v8::Function> hook)
      : owner_(current->owner), isolate_(owner_->isolate), context_(current->context), value_(value),
        transfer_(transfer), prototype_(prototype), hook_(hook) {}

  ~Cloning() override {
    Free();
    for (v8::Address* host : hosts_) DropGlobal(&host);
  }

  // The copy, or nothing with an exception pending.
  v8::MaybeLocal<v8::Value> Run() {
    Local<v8::Value> moved;
    if (!Write() || !Copy() || (transfer_->Length() > 0 && !Ask(kMove, value_, &moved))) return {};
    return Read(moved.As<v8::Array>());
  }

  // The bytes of the value, or nothing with an exception pending. There are no platform objects in it: the hook throws.
  Local<v8::Value> Serialize() {
    if (!Write()) return Local<v8::Value>();
    uint8_t* data;
    Local<v8::Value> bytes = NewBytes(isolate_, size_, &data);
    if (bytes.IsEmpty()) {
      NoMemory();
    } else {
      memcpy(data, data_, size_);
    }
    return bytes;
  }

  // The value that Serialize, in whatever context, made these bytes of. They are not the buffer of handler code.
  v8::MaybeLocal<v8::Value> Deserialize(uint8_t* data, size_t size) {
    data_ = data;
    size_ = size;
    v8::MaybeLocal<v8::Value> value = Read(transfer_);
    data_ = nullptr;
    return value;
  }

  void ThrowDataCloneError(Local<v8::String> message) override {
    Local<v8::Value> error;
    if (Ask(kError, message, &error)) isolate_->ThrowException(error);
  }

  bool HasCustomHostObject(v8::Isolate*) override { return true; }

  v8::Maybe<bool> IsHostObject(v8::Isolate*, Local<v8::Object> object) override {
    Local<v8::Value> prototype = object->GetPrototypeV2();
    if (*prototype.slot() == *prototype_.slot() || prototype->FullIsNull()) return v8::Maybe<bool>(false);
    Local<v8::Value> is;
    if (!Ask(kIsHost, object, &is)) return {};
    return v8::Maybe<bool>(is->FullIsTrue());
  }

  v8::Maybe<bool> WriteHostObject(v8::Isolate*, Local<v8::Object> object) override {
    writer_->WriteUint32(static_cast<uint32_t>(hosts_.size()));
    hosts_.push_back(NewGlobal(isolate_, object));  // V8 drops the handle when this returns
    return v8::Maybe<bool>(true);
  }

  v8::MaybeLocal<v8::Object> ReadHostObject(v8::Isolate*) override {
    uint32_t i = 0;
    if (!reader_->ReadUint32(&i) || i >= hosts_.size()) return {};
    return Local<v8::Object>(hosts_[i]);
  }

  // V8 would share the module by a number, and reads no module at all where nobody keeps the numbers.
  v8::Maybe<uint32_t> GetWasmModuleTransferId(v8::Isolate*, Local<v8::WasmModuleObject>) override {
    Local<v8::String> why;
    if (NewText(isolate_, "a WebAssembly.Module could not be cloned", 40, &why)) ThrowDataCloneError(why);
    return {};
  }

  // What is serialised is held beside the heap and the ArrayBuffers, and bounded like these: all clones of the isolate
  // that are under way together, for a getter may clone.
  void* ReallocateBufferMemory(void* old, size_t size, size_t* actual) override {
    if (size > BudgetLimit(owner_->buffers) - (owner_->scratch - held_)) return nullptr;
    void* memory = realloc(old, size);
    if (!memory) return nullptr;
    owner_->scratch += size - held_;
    held_ = *actual = size;
    return memory;
  }

  void FreeBufferMemory(void* memory) override {
    free(memory);
    owner_->scratch -= held_;
    held_ = 0;
  }

 private:
  bool Ask(Question question, Local<v8::Value> about, Local<v8::Value>* answer) {
    Local<v8::Value> argv[2] = {v8::Number::New(isolate_, question), about};
    return hook_->Call(isolate_, context_, Local<v8::Value>(owner_->constants[0]), 2, argv).To(answer);
  }

  bool Write() {
    v8::ValueSerializer writer(isolate_, this);
    writer_ = &writer;
    writer.WriteHeader();
    for (uint32_t i = 0; i < transfer_->Length(); i++) {
      Local<v8::Value> buffer;
      if (!transfer_->Get(context_, i).To(&buffer)) return false;
      writer.TransferArrayBuffer(i, buffer.As<v8::ArrayBuffer>());
    }
    bool ok = false;
    if (!writer.WriteValue(context_, value_).To(&ok) || !ok) return false;
    auto [data, size] = writer.Release();
    data_ = data;
    size_ = size;
    return true;
  }

  // Copies the platform objects. While V8 reads, no JavaScript may run.
  bool Copy() {
    for (v8::Address*& host : hosts_) {
      v8::HandleScope handles(isolate_);
      Local<v8::Value> copy;
      if (!Ask(kCopy, Local<v8::Value>(host), &copy)) return false;
      DropGlobal(&host);
      host = NewGlobal(isolate_, copy);
    }
    return true;
  }

  v8::MaybeLocal<v8::Value> Read(Local<v8::Array> moved) {
    Local<v8::Value> copy;
    {
      v8::TryCatch caught(isolate_);
      v8::ValueDeserializer reader(isolate_, data_, size_, this);
      reader_ = &reader;
      for (uint32_t i = 0; i < transfer_->Length(); i++) {
        Local<v8::Value> buffer;
        if (!moved->Get(context_, i).To(&buffer)) return {};
        reader.TransferArrayBuffer(i, buffer.As<v8::ArrayBuffer>());
      }
      bool ok = false;
      if (reader.ReadHeader(context_).To(&ok) && reader.ReadValue(context_).To(&copy)) return copy;
      if (caught.HasTerminated()) {
        caught.ReThrow();
        return {};
      }
    }
    // HTML makes a DataCloneError of whatever goes wrong here. It is memory: no JavaScript runs.
    Free();
    NoMemory();
    return {};
  }

  void NoMemory() {
    Local<v8::String> why;
    if (NewText(isolate_, "there is no memory for the clone", 32, &why)) ThrowDataCloneError(why);
  }

  void Free() {
    if (data_ && held_ > 0) FreeBufferMemory(data_);
    data_ = nullptr;
  }

  v8x_isolate* owner_;
  v8::Isolate* isolate_;
  Local<v8::Context> context_;
  Local<v8::Value> value_;
  Local<v8::Array> transfer_;
  Local<v8::Value> prototype_;  // Object.prototype: what has it is no platform object
  Local<v8::Function> hook_;
  v8::ValueSerializer* writer_ = nullptr;
  v8::ValueDeserializer* reader_ = nullptr;
  std::vector<v8::Address*> hosts_;  // platform objects, and then their copies
  size_t held_ = 0;                  // bytes of memory for what is serialised
  uint8_t* data_ = nullptr;          // what Write has left
  size_t size_ = 0;
};

}  // namespace

void Clone(const Info& info) {
  if (info.Length() < 4 || !info[1]->IsArray() || !info[3]->IsFunction()) return;
  Cloning cloning(info[0], info[1].As<v8::Array>(), info[2], info[3].As<v8::Function>());
  Local<v8::Value> copy;
  if (cloning.Run().To(&copy)) info.Return(copy);
}

void Serialize(const Info& info) {
  if (info.Length() < 3 || !info[2]->IsFunction()) return;
  Cloning cloning(info[0], v8::Array::New(current->owner->isolate, nullptr, 0), info[1], info[2].As<v8::Function>());
  Local<v8::Value> bytes = cloning.Serialize();
  if (!bytes.IsEmpty()) info.Return(bytes);
}

void Deserialize(const Info& info) {
  uint8_t* data = nullptr;
  size_t size = 0;
  if (info.Length() < 2 || !BytesOf(info[0], &data, &size) || !info[1]->IsFunction()) return;
  Local<v8::Value> none(current->owner->constants[0]);
  Cloning cloning(none, v8::Array::New(current->owner->isolate, nullptr, 0), none, info[1].As<v8::Function>());
  Local<v8::Value> value;
  if (cloning.Deserialize(data, size).To(&value)) info.Return(value);
}

}  // namespace v8x
