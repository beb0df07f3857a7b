// V8's serializer, declared by hand like the rest of its interface (v8abi.h).
#pragma once
#include "v8abi.h"

#include <utility>

namespace v8 {

class SharedArrayBuffer;
class SharedValueConveyor;
class WasmModuleObject;

class ValueSerializer {
 public:
  // Virtual functions in V8's order, here and below: their place in the table is the interface.
  class Delegate {
   public:
    virtual ~Delegate() = default;
    virtual void ThrowDataCloneError(Local<String> message) = 0;
    virtual bool HasCustomHostObject(Isolate*);
    virtual Maybe<bool> IsHostObject(Isolate*, Local<Object>);
    virtual Maybe<bool> WriteHostObject(Isolate*, Local<Object>);
    virtual Maybe<uint32_t> GetSharedArrayBufferId(Isolate*, Local<SharedArrayBuffer>);
    virtual Maybe<uint32_t> GetWasmModuleTransferId(Isolate*, Local<WasmModuleObject>);
    virtual bool AdoptSharedValueConveyor(Isolate*, SharedValueConveyor&&);
    virtual void* ReallocateBufferMemory(void* old, size_t size, size_t* actual_size);
    virtual void FreeBufferMemory(void*);
  };
  ValueSerializer(Isolate*, Delegate*);
  ~ValueSerializer();
  void WriteHeader();
  Maybe<bool> WriteValue(Local<Context>, Local<Value>);
  void WriteUint32(uint32_t);
  void TransferArrayBuffer(uint32_t id, Local<ArrayBuffer>);
  std::pair<uint8_t*, size_t> Release();

 private:
  void* private_;
};

class ValueDeserializer {
 public:
  class Delegate {
   public:
    virtual ~Delegate() = default;
    virtual MaybeLocal<Object> ReadHostObject(Isolate*);
    virtual MaybeLocal<WasmModuleObject> GetWasmModuleFromId(Isolate*, uint32_t);
    virtual MaybeLocal<SharedArrayBuffer> GetSharedArrayBufferFromId(Isolate*, uint32_t);
    virtual const SharedValueConveyor* GetSharedValueConveyor(Isolate*);
  };
  ValueDeserializer(Isolate*, const uint8_t*, size_t, Delegate*);
  ~ValueDeserializer();
  Maybe<bool> ReadHeader(Local<Context>);
  MaybeLocal<Value> ReadValue(Local<Context>);
  bool ReadUint32(uint32_t*);
  void TransferArrayBuffer(uint32_t id, Local<ArrayBuffer>);

 private:
  void* private_;
};

}  // namespace v8
