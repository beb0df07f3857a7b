// V8's WebAssembly, declared by hand like the rest of its interface (v8abi.h).
#pragma once
#include "v8abi.h"

#include <string>

namespace v8 {

namespace internal::wasm {
class NativeModule;
}

// A module's code, which all isolates of the process may share.
class CompiledWasmModule {
 private:
  const std::shared_ptr<internal::wasm::NativeModule> native_module_;
  const std::string source_url_;
};

class WasmModuleObject : public Object {
 public:
  static MaybeLocal<WasmModuleObject> FromCompiledModule(Isolate*, const CompiledWasmModule&);
  CompiledWasmModule GetCompiledModule();
  static MaybeLocal<WasmModuleObject> Compile(Isolate*, MemorySpan<const uint8_t>);
};

}  // namespace v8
