#include "sources.h"

#include "natives.h"
#include "state.h"

#include <algorithm>

namespace v8x {

namespace {

// V8's one-byte strings are Latin-1, and our texts are UTF-8: in ASCII they agree.
bool IsAscii(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Sources::Sources(const v8x_file* files, size_t n) {
  for (const intptr_t* p = ExternalReferences(); *p; p++) references_.push_back(*p);
  for (size_t i = 0; i < n; i++) {
    files_.emplace_back(files[i]);
    references_.push_back(reinterpret_cast<intptr_t>(&files_.back().text));
  }
  references_.push_back(0);
}

bool Sources::Text(v8::Isolate* isolate, size_t i, v8::Local<v8::String>* s) {
  Resource* r = &files_[i].text;
  if (r->text().empty() || !IsAscii(r->text())) return NewText(isolate, r->data(), r->length(), s);
  return v8::String::NewExternalOneByte(isolate, r).To(s);
}

}  // namespace v8x
