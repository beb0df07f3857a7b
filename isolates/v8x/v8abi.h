// The part of V8's C++ interface that v8x.cc uses, declared by hand for exactly V8 13.6.233.10.
//
// V8's own headers are not ours to commit, and a build must need nothing but Go and a C++ compiler
// (docs/development/adr/0002). Only names, parameter types and object layouts matter to the linker and the
// ABI; each is checked against the real headers of the module cache by TestABI, and the version
// of the V8 that was linked is checked when the process starts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace v8 {
namespace internal {
using Address = uintptr_t;
class Isolate;
}  // namespace internal

using internal::Address;

class Array;
class ArrayBuffer;
class Boolean;
class Context;
class Data;
class ExtensionConfiguration;
class FixedArray;
class Function;
class Isolate;
class Message;
class MicrotaskQueue;
class Module;
class Object;
class ObjectTemplate;
class Promise;
class String;
class UnboundModuleScript;
class Value;

// A handle is a pointer to a slot that the garbage collector keeps up to date.
template <class T>
class Local {
 public:
  Local() = default;
  explicit Local(Address* slot) : slot_(slot) {}
  template <class S>
  Local(Local<S> that) : slot_(that.slot()) {}
  template <class S>
  Local<S> As() const { return Local<S>(slot_); }
  bool IsEmpty() const { return slot_ == nullptr; }
  T* operator->() const { return reinterpret_cast<T*>(slot_); }
  Address* slot() const { return slot_; }

 private:
  Address* slot_ = nullptr;
};

template <class T>
class MaybeLocal {
 public:
  MaybeLocal() = default;
  template <class S>
  MaybeLocal(Local<S> that) : local_(that) {}
  bool To(Local<T>* out) const {
    *out = local_;
    return !local_.IsEmpty();
  }

 private:
  Local<T> local_;
};

template <class T>
class Maybe {
 public:
  Maybe() = default;
  explicit Maybe(T value) : has_value_(true), value_(value) {}
  bool To(T* out) const {
    if (has_value_) *out = value_;
    return has_value_;
  }

 private:
  bool has_value_ = false;
  T value_{};
};

template <class T>
class MemorySpan {
 public:
  MemorySpan(T* data, size_t size) : data_(data), size_(size) {}

 private:
  T* data_;
  size_t size_;
};

namespace api_internal {
void DisposeGlobal(Address* global);
Address* GlobalizeReference(internal::Isolate*, Address value);
}  // namespace api_internal

class HandleScope {
 public:
  explicit HandleScope(Isolate*);
  ~HandleScope();
  HandleScope(const HandleScope&) = delete;
  void operator=(const HandleScope&) = delete;

 private:
  internal::Isolate* i_isolate_;
  Address* prev_next_;
  Address* prev_limit_;
};

class Locker {
 public:
  explicit Locker(Isolate* isolate) { Initialize(isolate); }
  ~Locker();
  Locker(const Locker&) = delete;
  void operator=(const Locker&) = delete;

 private:
  void Initialize(Isolate*);
  bool has_lock_;
  bool top_level_;
  internal::Isolate* isolate_;
};

class TryCatch {
 public:
  explicit TryCatch(Isolate*);
  ~TryCatch();
  bool HasCaught() const;
  bool HasTerminated() const;
  Local<Value> Exception() const;
  Local<class Message> Message() const;
  void Reset();
  Local<Value> ReThrow();
  TryCatch(const TryCatch&) = delete;
  void operator=(const TryCatch&) = delete;

 private:
  internal::Isolate* i_isolate_;
  TryCatch* next_;
  void* exception_;
  void* message_obj_;
  Address js_stack_comparable_address_;
  uint8_t bits_;
};

struct OOMDetails {
  bool is_heap_oom = false;
  const char* detail = nullptr;
};
using FatalErrorCallback = void (*)(const char* location, const char* message);
using OOMErrorCallback = void (*)(const char* location, const OOMDetails&);
using V8FatalErrorCallback = void (*)(const char* file, int line, const char* message);
enum class MemoryPressureLevel { kNone, kModerate, kCritical };
using NearHeapLimitCallback = size_t (*)(void* data, size_t current, size_t initial);

// Of one space of a heap, in bytes.
class HeapSpaceStatistics {
 public:
  HeapSpaceStatistics();
  const char* space_name() { return space_name_; }
  size_t space_size() { return space_size_; }

 private:
  const char* space_name_;
  size_t space_size_;
  size_t space_used_size_;
  size_t space_available_size_;
  size_t physical_space_size_;
};

enum PromiseRejectEvent {
  kPromiseRejectWithNoHandler = 0,
  kPromiseHandlerAddedAfterReject = 1,
  kPromiseRejectAfterResolved = 2,
  kPromiseResolveAfterResolved = 3,
};
class PromiseRejectMessage {
 public:
  Local<Promise> GetPromise() const { return promise_; }
  PromiseRejectEvent GetEvent() const { return event_; }
  Local<Value> GetValue() const { return value_; }

 private:
  Local<Promise> promise_;
  PromiseRejectEvent event_;
  Local<Value> value_;
};
using PromiseRejectCallback = void (*)(PromiseRejectMessage);

using HostImportModuleDynamicallyCallback = MaybeLocal<Promise> (*)(Local<Context>, Local<Data> host_defined_options,
                                                                   Local<Value> resource_name, Local<String> specifier,
                                                                   Local<FixedArray> import_attributes);
using HostInitializeImportMetaObjectCallback = void (*)(Local<Context>, Local<Module>, Local<Object> meta);

// Whether V8 may compile WebAssembly now.
using AllowWasmCodeGenerationCallback = bool (*)(Local<Context>, Local<String> source);
template <class T>
class FunctionCallbackInfo;
// True: it has done what V8's own function would do.
using ExtensionCallback = bool (*)(const FunctionCallbackInfo<Value>&);

class StartupData {
 public:
  const char* data;
  int raw_size;
};

enum GCType { kGCTypeMarkSweepCompact = 1 << 2 };
enum GCCallbackFlags {};
using GCCallbackWithData = void (*)(class Isolate*, GCType, GCCallbackFlags, void* data);

class Isolate {
 public:
  // Of the parameters of a new isolate only where two of them stand.
  struct CreateParams {
    static constexpr size_t kSnapshotBlob = 56;
    static constexpr size_t kExternalReferences = 112;
  };
  void Enter();
  void Exit();
  void TerminateExecution();
  void CancelTerminateExecution();
  void PerformMicrotaskCheckpoint();
  void DiscardThreadSpecificMetadata();
  bool IsExecutionTerminating();
  Local<Value> ThrowException(Local<Value>);
  void AddNearHeapLimitCallback(NearHeapLimitCallback, void* data);
  void RemoveNearHeapLimitCallback(NearHeapLimitCallback, size_t heap_limit);
  void AddGCEpilogueCallback(GCCallbackWithData, void* data, GCType);
  size_t NumberOfHeapSpaces();
  bool GetHeapSpaceStatistics(HeapSpaceStatistics*, size_t index);
  void SetOOMErrorHandler(OOMErrorCallback);
  void SetFatalErrorHandler(FatalErrorCallback);
  void SetPromiseRejectCallback(PromiseRejectCallback);
  static Isolate* GetCurrent();
  void SetHostImportModuleDynamicallyCallback(HostImportModuleDynamicallyCallback);
  void SetHostInitializeImportMetaObjectCallback(HostInitializeImportMetaObjectCallback);
  void SetAllowWasmCodeGenerationCallback(AllowWasmCodeGenerationCallback);
  void SetWasmModuleCallback(ExtensionCallback);
  void MemoryPressureNotification(MemoryPressureLevel);
  void LowMemoryNotification();
  int64_t AdjustAmountOfExternalAllocatedMemory(int64_t);
  // What every promise reaction takes along from where it was made (AsyncContext).
  Local<Value> GetContinuationPreservedEmbedderData();
  void SetContinuationPreservedEmbedderData(Local<Value>);
};

class V8 {
 public:
  static const char* GetVersion();
  static void SetFatalErrorHandler(V8FatalErrorCallback);
  static void SetEntropySource(bool (*)(unsigned char* bytes, size_t length));
};

struct DeserializeInternalFieldsCallback {
  void (*callback)(Local<Object>, int, void*, void*) = nullptr;
  void* data = nullptr;
};
struct DeserializeContextDataCallback {
  void (*callback)() = nullptr;
  void* data = nullptr;
};
struct DeserializeAPIWrapperCallback {
  void (*callback)() = nullptr;
  void* data = nullptr;
};

struct SerializeInternalFieldsCallback {
  StartupData (*callback)(Local<Object>, int, void*) = nullptr;
  void* data = nullptr;
};
struct SerializeContextDataCallback {
  StartupData (*callback)(Local<Context>, int, void*) = nullptr;
  void* data = nullptr;
};
struct SerializeAPIWrapperCallback {
  StartupData (*callback)(Local<Object>, void*, void*) = nullptr;
  void* data = nullptr;
};

class SnapshotCreator {
 public:
  enum class FunctionCodeHandling { kClear, kKeep };
  explicit SnapshotCreator(const intptr_t* external_references, const StartupData* existing);
  ~SnapshotCreator();
  Isolate* GetIsolate();
  void SetDefaultContext(Local<Context>, SerializeInternalFieldsCallback, SerializeContextDataCallback,
                         SerializeAPIWrapperCallback);
  size_t AddContext(Local<Context>, SerializeInternalFieldsCallback, SerializeContextDataCallback,
                    SerializeAPIWrapperCallback);
  StartupData CreateBlob(FunctionCodeHandling);
  size_t AddData(Local<Context>, Address object);

 private:
  void* impl_;
};

class Data {};

class Context : public Data {
 public:
  static Local<Context> New(Isolate*, ExtensionConfiguration* = nullptr,
                            MaybeLocal<ObjectTemplate> = {}, MaybeLocal<Value> = {},
                            DeserializeInternalFieldsCallback = {}, MicrotaskQueue* = nullptr,
                            DeserializeContextDataCallback = {}, DeserializeAPIWrapperCallback = {});
  static MaybeLocal<Context> FromSnapshot(Isolate*, size_t index, DeserializeInternalFieldsCallback,
                                          ExtensionConfiguration*, MaybeLocal<Value> global, MicrotaskQueue*,
                                          DeserializeContextDataCallback, DeserializeAPIWrapperCallback);
  Address* GetDataFromSnapshotOnce(size_t index);
  Local<Object> Global();
  void Enter();
  void Exit();
  void AllowCodeGenerationFromStrings(bool);
};

class Value : public Data {
 public:
  bool FullIsUndefined() const;
  bool FullIsNull() const;
  bool FullIsTrue() const;
  bool FullIsFalse() const;
  bool FullIsString() const;
  bool IsNumber() const;
  bool IsArray() const;
  bool IsArrayBuffer() const;
  bool IsArrayBufferView() const;
  bool IsFunction() const;
  bool IsProxy() const;
  bool IsPromise() const;
  bool IsWasmModuleObject() const;
};

class Number : public Value {
 public:
  static Local<Number> New(Isolate*, double);
  double Value() const;
};

class Name : public Value {};

enum class NewStringType { kNormal, kInternalized };

class String : public Name {
 public:
  struct WriteFlags {
    enum { kNone = 0, kNullTerminate = 1, kReplaceInvalidUtf8 = 2 };
  };
  int Length() const;
  size_t Utf8LengthV2(Isolate*) const;
  size_t WriteUtf8V2(Isolate*, char* buffer, size_t capacity, int flags, size_t* processed) const;
  static MaybeLocal<String> NewFromUtf8(Isolate*, const char*, NewStringType, int length);
  static MaybeLocal<String> NewFromOneByte(Isolate*, const uint8_t*, NewStringType, int length);

  // Characters outside of the heap. Virtual functions in V8's order.
  class ExternalStringResourceBase {
   public:
    virtual ~ExternalStringResourceBase() = default;
    virtual bool IsCacheable() const { return true; }
    virtual void Unaccount(Isolate*) {}
    virtual size_t EstimateMemoryUsage() const { return static_cast<size_t>(-1); }
    virtual void EstimateSharedMemoryUsage(void* recorder) const { (void)recorder; }

   protected:
    virtual void Dispose() { delete this; }
    virtual void Lock() const {}
    virtual void Unlock() const {}
  };
  class ExternalOneByteStringResource : public ExternalStringResourceBase {
   public:
    virtual const char* data() const = 0;
    virtual size_t length() const = 0;

   private:
    const char* cached_data_ = nullptr;  // V8's
  };
  static MaybeLocal<String> NewExternalOneByte(Isolate*, ExternalOneByteStringResource*);
};

template <class T>
class PropertyCallbackInfo {
 public:
  void Return(Local<Value> v) const { args_[kReturnValueIndex] = *v.slot(); }

 private:
  static constexpr int kReturnValueIndex = 5;
  static constexpr int kArgsLength = 8;
  mutable Address args_[kArgsLength];
};
using AccessorNameGetterCallback = void (*)(Local<Name>, const PropertyCallbackInfo<Value>&);

enum PropertyAttribute { None = 0, ReadOnly = 1, DontEnum = 2, DontDelete = 4 };
enum class SideEffectType { kHasSideEffect, kHasNoSideEffect, kHasSideEffectToReceiver };

class Object : public Value {
 public:
  static Local<Object> New(Isolate*);
  MaybeLocal<Value> Get(Local<Context>, uint32_t index);
  Maybe<bool> Set(Local<Context>, Local<Value> key, Local<Value> value);
  Local<Value> GetPrototypeV2();
  Maybe<bool> CreateDataProperty(Local<Context>, Local<Name> key, Local<Value> value);
  Maybe<bool> SetLazyDataProperty(Local<Context>, Local<Name>, AccessorNameGetterCallback, Local<Value> data,
                                  PropertyAttribute, SideEffectType getter, SideEffectType setter);
};

class Array : public Object {
 public:
  static Local<Array> New(Isolate*, Local<Value>* elements, size_t length);
  uint32_t Length() const;
};

enum class BackingStoreInitializationMode { kZeroInitialized, kUninitialized };

// Virtual functions in V8's order, as below.
class PageAllocator {
 public:
  enum Permission { kNoAccess, kRead, kReadWrite, kReadWriteExecute, kReadExecute, kNoAccessWillJitLater };
  class SharedMemory {
   public:
    virtual ~SharedMemory() = default;
  };
  virtual ~PageAllocator() = default;
  virtual size_t AllocatePageSize() = 0;
  virtual size_t CommitPageSize() = 0;
  virtual void SetRandomMmapSeed(int64_t seed) = 0;
  virtual void* GetRandomMmapAddr() = 0;
  virtual void* AllocatePages(void* address, size_t length, size_t alignment, Permission) = 0;
  virtual bool FreePages(void* address, size_t length) = 0;
  virtual bool ReleasePages(void* address, size_t length, size_t new_length) = 0;
  virtual bool SetPermissions(void* address, size_t length, Permission) = 0;
  virtual bool RecommitPages(void* address, size_t length, Permission) = 0;
  virtual bool DiscardSystemPages(void* address, size_t size) = 0;
  virtual bool DecommitPages(void* address, size_t size) = 0;
  virtual bool SealPages(void* address, size_t length) = 0;
  virtual bool ReserveForSharedMemoryMapping(void* address, size_t size) = 0;
  virtual std::unique_ptr<SharedMemory> AllocateSharedPages(size_t length, const void* original) = 0;
  virtual bool CanAllocateSharedPages() = 0;
};

class ArrayBuffer : public Object {
 public:
  // Virtual functions in V8's order: their place in the table is the interface.
  class Allocator {
   public:
    virtual ~Allocator() = default;
    virtual void* Allocate(size_t length) = 0;
    virtual void* AllocateUninitialized(size_t length) = 0;
    virtual void Free(void* data, size_t length) = 0;
    virtual size_t MaxAllocationSize() const = 0;
    virtual PageAllocator* GetPageAllocator() = 0;
  };
  static MaybeLocal<ArrayBuffer> MaybeNew(Isolate*, size_t, BackingStoreInitializationMode);
  size_t ByteLength() const;
  void* Data() const;
};

class ArrayBufferView : public Object {
 public:
  Local<ArrayBuffer> Buffer();
  size_t ByteOffset();
  size_t ByteLength();
  size_t CopyContents(void* dest, size_t length);
};

class Uint8Array : public ArrayBufferView {
 public:
  static Local<Uint8Array> New(Local<ArrayBuffer>, size_t offset, size_t length);
};

template <class T>
class FunctionCallbackInfo {
 public:
  int Length() const { return static_cast<int>(length_); }
  Local<Value> operator[](int i) const { return Local<Value>(values_ + i); }
  void Return(Local<Value> v) const { implicit_args_[kReturnValueIndex] = *v.slot(); }
  Local<Value> NewTarget() const { return Local<Value>(implicit_args_ + kNewTargetIndex); }

 private:
  static constexpr int kReturnValueIndex = 3;
  static constexpr int kNewTargetIndex = 5;
  Address* implicit_args_;
  Address* values_;
  Address length_;
};
using FunctionCallback = void (*)(const FunctionCallbackInfo<Value>&);

enum class ConstructorBehavior { kThrow, kAllow };

class Function : public Object {
 public:
  static MaybeLocal<Function> New(Local<Context>, FunctionCallback, Local<Value> data, int length,
                                  ConstructorBehavior, SideEffectType);
  MaybeLocal<Value> Call(Isolate*, Local<Context>, Local<Value> receiver, int argc,
                         Local<Value> argv[]);
};

class Exception {
 public:
  static Local<Value> RangeError(Local<String>, Local<Value> options);
  static Local<Value> TypeError(Local<String>, Local<Value> options);
  static Local<Value> WasmCompileError(Local<String>, Local<Value> options);
};

class Message {
 public:
  Local<String> Get() const;
  Local<Value> GetScriptResourceName() const;
  Maybe<int> GetLineNumber(Local<Context>) const;
  int GetStartColumn() const;
};

class Promise : public Object {
 public:
  enum PromiseState { kPending, kFulfilled, kRejected };
  class Resolver;
  PromiseState State();
  Local<Value> Result();
  void MarkAsHandled();
};

class Promise::Resolver : public Object {
 public:
  static MaybeLocal<Resolver> New(Local<Context>);
  Local<Promise> GetPromise();
  Maybe<bool> Resolve(Local<Context>, Local<Value>);
  Maybe<bool> Reject(Local<Context>, Local<Value>);
};

class Proxy : public Object {
 public:
  Local<Value> GetTarget();
  Local<Value> GetHandler();
};

class Module : public Data {
 public:
  using ResolveModuleCallback = MaybeLocal<Module> (*)(Local<Context>, Local<String>,
                                                       Local<FixedArray>, Local<Module>);
  using ResolveSourceCallback = MaybeLocal<Object> (*)(Local<Context>, Local<String>,
                                                       Local<FixedArray>, Local<Module>);
  Maybe<bool> InstantiateModule(Local<Context>, ResolveModuleCallback, ResolveSourceCallback);
  MaybeLocal<Value> Evaluate(Local<Context>);
  Local<Value> GetModuleNamespace();
  Local<UnboundModuleScript> GetUnboundModuleScript();
  using SyntheticModuleEvaluationSteps = MaybeLocal<Value> (*)(Local<Context>, Local<Module>);
  static Local<Module> CreateSyntheticModule(Isolate*, Local<String> name, const MemorySpan<const Local<String>>& exports,
                                             SyntheticModuleEvaluationSteps);
  Maybe<bool> SetSyntheticModuleExport(Isolate*, Local<String> name, Local<Value>);
};

class UnboundModuleScript : public Data {};

class ScriptCompiler {
 public:
  struct CachedData {
    enum BufferPolicy { BufferNotOwned, BufferOwned };
    CachedData(const uint8_t* bytes, int n) : data(bytes), length(n) {}
    ~CachedData();
    const uint8_t* data;
    int length;
    bool rejected = false;
    BufferPolicy buffer_policy = BufferNotOwned;
  };
  enum CompileOptions { kNoCompileOptions = 0, kConsumeCodeCache = 1 };
  enum NoCacheReason { kNoCacheNoReason = 0 };
  using CompileHintCallback = bool (*)(int, void*);

  class Source {
   public:
    // The cache stays the caller's.
    Source(Local<String> text, Local<Value> name, bool is_module, CachedData* cache = nullptr)
        : source_string(text), resource_name(name), resource_options(is_module ? kIsModule : 0), cached_data(cache) {}

   private:
    static constexpr int kIsModule = 1 << 3;
    Local<String> source_string;
    Local<Value> resource_name;
    int resource_line_offset = 0;
    int resource_column_offset = 0;
    int resource_options;
    Local<Value> source_map_url;
    Local<Data> host_defined_options;
    CachedData* cached_data;             // std::unique_ptr in V8: one pointer
    void* consume_cache_task = nullptr;  // the same
    CompileHintCallback compile_hint_callback = nullptr;
    void* compile_hint_callback_data = nullptr;
    struct {
      int in_memory_cache_result = 0;
      int64_t foreground_time_in_microseconds = -1;
      int64_t background_time_in_microseconds = -1;
    } compilation_details;
  };

  static MaybeLocal<Module> CompileModule(Isolate*, Source*, CompileOptions, NoCacheReason);
  static MaybeLocal<Function> CompileFunction(Local<Context>, Source*, size_t argc,
                                              Local<String> argv[], size_t extensions,
                                              Local<Object> extension[], CompileOptions,
                                              NoCacheReason);
  static CachedData* CreateCodeCache(Local<UnboundModuleScript>);
  static CachedData* CreateCodeCacheForFunction(Local<Function>);
};

}  // namespace v8
