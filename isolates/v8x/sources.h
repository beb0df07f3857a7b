// The runtime's files, kept once per process and not once per isolate.
#pragma once
#include "v8abi.h"
#include "v8x.h"

#include <deque>
#include <string>
#include <vector>

namespace v8x {

// V8 keeps the source of every function that it may have to compile, in the heap: half a megabyte in each isolate, of
// the same characters. These strings are outside, and those heaps point to them. Heaps that come from a snapshot find them by
// their places in the list of external references, so that they are never freed.
class Sources {
 public:
  // Copies the files.
  Sources(const v8x_file* files, size_t n);
  Sources(const Sources&) = delete;
  void operator=(const Sources&) = delete;

  size_t size() const { return files_.size(); }
  const std::string& name(size_t i) const { return files_[i].name; }
  // Of which feature file i is: it runs at the feature's first use. Those of "" run when the context is made.
  const std::string& feature(size_t i) const { return files_[i].feature; }
  const std::string& cache(size_t i) const { return files_[i].cache; }
  // Replaces the cache. Nothing else may use the object meanwhile.
  void Cache(size_t i, std::string cache) { files_[i].cache = std::move(cache); }
  // The text of file i.
  bool Text(v8::Isolate*, size_t i, v8::Local<v8::String>*);

  // The addresses of host's functions and of these texts: what the snapshot may refer to.
  const intptr_t* References() const { return references_.data(); }

 private:
  class Resource final : public v8::String::ExternalOneByteStringResource {
   public:
    explicit Resource(const v8x_file& f) : text_(f.text, f.text_len) {}
    const char* data() const override { return text_.data(); }
    size_t length() const override { return text_.size(); }
    const std::string& text() const { return text_; }

   protected:
    void Dispose() override {}  // an isolate is gone; others have it still

   private:
    std::string text_;
  };
  struct File {
    explicit File(const v8x_file& f)
        : text(f), name(f.name, f.name_len), feature(f.feature, f.feature_len),
          cache(reinterpret_cast<const char*>(f.cache), f.cache_len) {}
    Resource text;
    std::string name, feature, cache;
  };
  std::deque<File> files_;
  std::vector<intptr_t> references_;
};

}  // namespace v8x
