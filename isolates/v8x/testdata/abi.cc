// Prints what of V8's interface v8abi.h relies on. TestABI builds it twice, with V8's own headers
// (-DREAL) and with ours, and compares what they print.
#ifdef REAL
#include "v8.h"
#else
#include "../v8abi_serializer.h"
#include "../v8abi_webassembly.h"
#endif
#include <cstdio>
#include <cstring>

template <class F>
static long VtableSlot(F f) {
  // Itanium C++ ABI §2.3: a pointer to a virtual member function is 1 + its offset in the table.
  long p;
  memcpy(&p, &f, sizeof p);
  return p;
}

#define SIZE(T) printf("%s: size %zu align %zu\n", #T, sizeof(T), alignof(T))
#define AT(T, field) printf("%s.%s: at %zu\n", #T, #field, __builtin_offsetof(T, field))
#define VALUE(v) printf("%s: %ld\n", #v, static_cast<long>(v))
#define SLOT(f) printf("%s: slot %ld\n", #f, VtableSlot(&f))
#define BY_REGISTER(T) printf("%s: passed in registers %d\n", #T, __is_trivially_copyable(T))

using namespace v8;
using Info = FunctionCallbackInfo<Value>;
using Source = ScriptCompiler::Source;

int main() {
  SIZE(Local<Value>);
  BY_REGISTER(Local<Value>);
  SIZE(MaybeLocal<Value>);
  BY_REGISTER(MaybeLocal<Value>);
  SIZE(Maybe<bool>);
  BY_REGISTER(Maybe<bool>);
  AT(Maybe<bool>, value_);
  SIZE(Maybe<int>);
  BY_REGISTER(Maybe<int>);
  AT(Maybe<int>, value_);
  SIZE(HandleScope);
  AT(HandleScope, i_isolate_);
  AT(HandleScope, prev_limit_);
  SIZE(Locker);
  AT(Locker, has_lock_);
  AT(Locker, top_level_);
  AT(Locker, isolate_);
  SIZE(TryCatch);
  AT(TryCatch, js_stack_comparable_address_);
  SIZE(OOMDetails);
  AT(OOMDetails, detail);
  SIZE(HeapSpaceStatistics);
  AT(HeapSpaceStatistics, space_name_);
  AT(HeapSpaceStatistics, space_size_);
  SIZE(PromiseRejectMessage);
  BY_REGISTER(PromiseRejectMessage);
  AT(PromiseRejectMessage, promise_);
  AT(PromiseRejectMessage, event_);
  AT(PromiseRejectMessage, value_);
  SIZE(DeserializeInternalFieldsCallback);
  BY_REGISTER(DeserializeInternalFieldsCallback);
  SIZE(DeserializeContextDataCallback);
  BY_REGISTER(DeserializeContextDataCallback);
  SIZE(DeserializeAPIWrapperCallback);
  BY_REGISTER(DeserializeAPIWrapperCallback);
#ifdef REAL
  printf("CreateParams.snapshot_blob: at %zu\n", __builtin_offsetof(Isolate::CreateParams, snapshot_blob));
  printf("CreateParams.external_references: at %zu\n", __builtin_offsetof(Isolate::CreateParams, external_references));
#else
  printf("CreateParams.snapshot_blob: at %zu\n", Isolate::CreateParams::kSnapshotBlob);
  printf("CreateParams.external_references: at %zu\n", Isolate::CreateParams::kExternalReferences);
#endif
  SIZE(StartupData);
  BY_REGISTER(StartupData);
  AT(StartupData, raw_size);
  SIZE(SnapshotCreator);
  SIZE(SerializeInternalFieldsCallback);
  BY_REGISTER(SerializeInternalFieldsCallback);
  SIZE(SerializeContextDataCallback);
  SIZE(SerializeAPIWrapperCallback);
  VALUE(SnapshotCreator::FunctionCodeHandling::kKeep);
  SIZE(Info);
  AT(Info, implicit_args_);
  AT(Info, values_);
  AT(Info, length_);
  VALUE(Info::kReturnValueIndex);
  VALUE(Info::kNewTargetIndex);
  SIZE(Source);
  AT(Source, source_string);
  AT(Source, resource_name);
  AT(Source, resource_line_offset);
  AT(Source, resource_options);
  AT(Source, source_map_url);
  AT(Source, host_defined_options);
  AT(Source, cached_data);
  SIZE(ScriptCompiler::CachedData);
  AT(ScriptCompiler::CachedData, data);
  AT(ScriptCompiler::CachedData, length);
  AT(ScriptCompiler::CachedData, rejected);
  AT(ScriptCompiler::CachedData, buffer_policy);
  VALUE(ScriptCompiler::CachedData::BufferNotOwned);
  VALUE(ScriptCompiler::kConsumeCodeCache);
  AT(Source, consume_cache_task);
  AT(Source, compile_hint_callback);
  AT(Source, compilation_details);
  SIZE(MemorySpan<const Local<String>>);
  AT(MemorySpan<const Local<String>>, data_);
  AT(MemorySpan<const Local<String>>, size_);
  SIZE(MemorySpan<const uint8_t>);
  BY_REGISTER(MemorySpan<const uint8_t>);
  SIZE(CompiledWasmModule);
  BY_REGISTER(CompiledWasmModule);
  AT(CompiledWasmModule, native_module_);
  AT(CompiledWasmModule, source_url_);
  VALUE(Promise::kPending);
  VALUE(Promise::kFulfilled);
  VALUE(Promise::kRejected);
  VALUE(MemoryPressureLevel::kCritical);
  VALUE(kPromiseRejectWithNoHandler);
  VALUE(kPromiseHandlerAddedAfterReject);
  VALUE(kPromiseRejectAfterResolved);
  VALUE(kPromiseResolveAfterResolved);
  VALUE(NewStringType::kNormal);
  VALUE(ConstructorBehavior::kThrow);
  VALUE(SideEffectType::kHasSideEffect);
  VALUE(None);
  VALUE(DontEnum);
  SIZE(PropertyCallbackInfo<Value>);
  AT(PropertyCallbackInfo<Value>, args_);
  VALUE(PropertyCallbackInfo<Value>::kReturnValueIndex);
  VALUE(BackingStoreInitializationMode::kUninitialized);
  VALUE(String::WriteFlags::kReplaceInvalidUtf8);
  VALUE(ScriptCompiler::kNoCompileOptions);
  VALUE(ScriptCompiler::kNoCacheNoReason);
  SLOT(ArrayBuffer::Allocator::Allocate);
  SLOT(ArrayBuffer::Allocator::AllocateUninitialized);
  SLOT(ArrayBuffer::Allocator::Free);
  SLOT(ArrayBuffer::Allocator::MaxAllocationSize);
  SLOT(ArrayBuffer::Allocator::GetPageAllocator);
  SIZE(String::ExternalOneByteStringResource);
  AT(String::ExternalOneByteStringResource, cached_data_);
  SLOT(String::ExternalOneByteStringResource::IsCacheable);
  SLOT(String::ExternalOneByteStringResource::Unaccount);
  SLOT(String::ExternalOneByteStringResource::EstimateMemoryUsage);
  SLOT(String::ExternalOneByteStringResource::EstimateSharedMemoryUsage);
  SLOT(String::ExternalOneByteStringResource::Dispose);
  SLOT(String::ExternalOneByteStringResource::Lock);
  SLOT(String::ExternalOneByteStringResource::Unlock);
  SLOT(String::ExternalOneByteStringResource::data);
  SLOT(String::ExternalOneByteStringResource::length);
  SLOT(PageAllocator::AllocatePageSize);
  SLOT(PageAllocator::CommitPageSize);
  SLOT(PageAllocator::SetRandomMmapSeed);
  SLOT(PageAllocator::GetRandomMmapAddr);
  SLOT(PageAllocator::AllocatePages);
  SLOT(PageAllocator::FreePages);
  SLOT(PageAllocator::ReleasePages);
  SLOT(PageAllocator::SetPermissions);
  SLOT(PageAllocator::RecommitPages);
  SLOT(PageAllocator::DiscardSystemPages);
  SLOT(PageAllocator::DecommitPages);
  SLOT(PageAllocator::SealPages);
  SLOT(PageAllocator::ReserveForSharedMemoryMapping);
  SLOT(PageAllocator::AllocateSharedPages);
  SLOT(PageAllocator::CanAllocateSharedPages);
  VALUE(PageAllocator::kReadWrite);
  SIZE(Maybe<uint32_t>);
  BY_REGISTER(Maybe<uint32_t>);
  AT(Maybe<uint32_t>, value_);
  using Serialized = std::pair<uint8_t*, size_t>;
  SIZE(Serialized);
  BY_REGISTER(Serialized);
  SIZE(ValueSerializer);
  SIZE(ValueSerializer::Delegate);
  SLOT(ValueSerializer::Delegate::ThrowDataCloneError);
  SLOT(ValueSerializer::Delegate::HasCustomHostObject);
  SLOT(ValueSerializer::Delegate::IsHostObject);
  SLOT(ValueSerializer::Delegate::WriteHostObject);
  SLOT(ValueSerializer::Delegate::GetSharedArrayBufferId);
  SLOT(ValueSerializer::Delegate::GetWasmModuleTransferId);
  SLOT(ValueSerializer::Delegate::AdoptSharedValueConveyor);
  SLOT(ValueSerializer::Delegate::ReallocateBufferMemory);
  SLOT(ValueSerializer::Delegate::FreeBufferMemory);
  SIZE(ValueDeserializer);
  SIZE(ValueDeserializer::Delegate);
  SLOT(ValueDeserializer::Delegate::ReadHostObject);
  SLOT(ValueDeserializer::Delegate::GetWasmModuleFromId);
  SLOT(ValueDeserializer::Delegate::GetSharedArrayBufferFromId);
  SLOT(ValueDeserializer::Delegate::GetSharedValueConveyor);
}
