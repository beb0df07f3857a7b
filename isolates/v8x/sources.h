// The text of the runtime's files, kept once per process and not once per isolate.
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
  // Copies the texts.
  Sources(const v8x_file* files, size_t n);
  Sources(const Sources&) = delete;
  void operator=(const Sources&) = delete;

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
  std::deque<Resource> texts_;
  std::vector<intptr_t> references_;
};

}  // namespace v8x
