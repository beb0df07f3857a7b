// V8's archive was built against a glibc that has the C23 parsers; older ones (< 2.38) lack them.
// Weak, so that a newer glibc's own win. The two differ only in accepting 0b binary literals.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WEAK __attribute__((weak))

WEAK long __isoc23_strtol(const char* s, char** end, int base) { return strtol(s, end, base); }
WEAK unsigned long __isoc23_strtoul(const char* s, char** end, int base) { return strtoul(s, end, base); }
WEAK long long __isoc23_strtoll(const char* s, char** end, int base) { return strtoll(s, end, base); }
WEAK unsigned long long __isoc23_strtoull(const char* s, char** end, int base) { return strtoull(s, end, base); }

WEAK int __isoc23_sscanf(const char* s, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsscanf(s, format, args);
  va_end(args);
  return n;
}

WEAK int __isoc23_fscanf(FILE* f, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vfscanf(f, format, args);
  va_end(args);
  return n;
}
