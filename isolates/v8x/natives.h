// The functions of the `host` object that the runtime (isolates/js) gets; handler code never sees it.
#pragma once
#include "v8abi.h"

namespace v8x {

// host.clone(value, transfer, prototype, hook), in clone.cc.
void Clone(const v8::FunctionCallbackInfo<v8::Value>&);

// host.serialize(value, prototype, hook) and host.deserialize(bytes, hook), there too.
void Serialize(const v8::FunctionCallbackInfo<v8::Value>&);
void Deserialize(const v8::FunctionCallbackInfo<v8::Value>&);

// The bytes of an ArrayBuffer or a view on one; false for anything else.
bool BytesOf(v8::Local<v8::Value>, uint8_t** data, size_t* n);

void ThrowType(v8::Isolate*, const char* text);

// Makes the host object in the current context, or returns an empty handle.
v8::Local<v8::Object> NewHost(v8::Isolate*, v8::Local<v8::Context>);

// The addresses of those functions, with a null at the end: what a snapshot may refer to.
const intptr_t* ExternalReferences();

// Of wasm.cc.
void CompileWasm(const v8::FunctionCallbackInfo<v8::Value>&);
void CheckWasm(const v8::FunctionCallbackInfo<v8::Value>&);
void IsWasmModule(const v8::FunctionCallbackInfo<v8::Value>&);

}  // namespace v8x
