package guarantees_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// All processes share the clock of the machine, so this code gives a process its own. Go, V8 and C read the time with a
// function that Linux puts into every process (the vDSO). The child process that runs this code replaces that function.
// The replacement asks the kernel, and adds the seconds in a file, where the test changes them. Only the time of day is
// moved. The clocks that measure elapsed time are not, as when a real clock is set.

const (
	auxVDSO    = 33 // AT_SYSINFO_EHDR: address of the vDSO
	vdsoBytes  = 2 * 4096
	farJump    = 12 // bytes of a jump to any address
	clockEntry = "__vdso_clock_gettime"
)

// moveClock makes this process read its time from the machine's clock and from the seconds in a file of 8 bytes.
func moveClock(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	offset, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("offset of the clock: %w", err)
	}
	base, vdso, err := findVDSO()
	if err != nil {
		return err
	}
	entry, gap, err := clockFunction(vdso)
	if err != nil {
		return err
	}
	code, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("code of the clock: %w", err)
	}
	copy(code, clockCode(uintptr(unsafe.Pointer(&offset[0]))))
	if _, _, errno := syscall.Syscall(syscall.SYS_MPROTECT, base, vdsoBytes,
		syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); errno != 0 {
		return fmt.Errorf("vDSO: %w", errno)
	}
	copy(vdso[gap:], jumpTo(uintptr(unsafe.Pointer(&code[0]))))
	near := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(int32(gap-entry-5)))
	// Other threads may be reading the time: they see the whole change or none of it.
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&vdso[entry])), binary.LittleEndian.Uint64(append(near, 0x90, 0x90, 0x90)))
	return nil
}

// findVDSO returns the address and content of the vDSO in this process.
func findVDSO() (base uintptr, vdso []byte, err error) {
	aux, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return 0, nil, err
	}
	for pair := range slices.Chunk(aux, 16) {
		if len(pair) == 16 && binary.LittleEndian.Uint64(pair) == auxVDSO {
			base = uintptr(binary.LittleEndian.Uint64(pair[8:]))
			at := *(*unsafe.Pointer)(unsafe.Pointer(&base)) // this is not Go's memory
			return base, unsafe.Slice((*byte)(at), vdsoBytes), nil
		}
	}
	return 0, nil, errors.New("this process has no vDSO")
}

// clockFunction returns the offset of the function, and the offset of bytes between two functions with room for a jump.
func clockFunction(vdso []byte) (entry, gap int, err error) {
	f, err := elf.NewFile(bytes.NewReader(vdso))
	if err != nil {
		return 0, 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, 0, err
	}
	slices.SortFunc(symbols, func(a, b elf.Symbol) int { return int(a.Value) - int(b.Value) })
	for i, s := range symbols {
		if s.Name == clockEntry {
			entry = int(s.Value)
		}
		if i+1 < len(symbols) && s.Size > 0 && symbols[i+1].Value >= s.Value+s.Size+farJump {
			gap = int(s.Value + s.Size)
		}
	}
	if entry == 0 || entry%8 != 0 || gap == 0 {
		return 0, 0, errors.New("the vDSO of this kernel has no room for a clock")
	}
	return entry, gap, nil
}

// clockCode is the code of clock_gettime(clock, at) that adds the value at offset to the seconds of clock 0, the time
// of day.
func clockCode(offset uintptr) []byte {
	code := []byte{
		0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 16, // jnz to ret
		0x48, 0xba, // mov rdx, offset
	}
	code = binary.LittleEndian.AppendUint64(code, uint64(offset))
	return append(code,
		0x48, 0x8b, 0x12, // mov rdx, [rdx]
		0x48, 0x01, 0x16, // add [rsi], rdx
		0xc3, // ret
	)
}

func jumpTo(where uintptr) []byte {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, uint64(where)) // mov rax, where
	return append(code, 0xff, 0xe0)                                             // jmp rax
}
