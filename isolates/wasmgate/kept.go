package wasmgate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
)

// V8 keeps the types of all modules until the process ends, and ends the thread that needs more than a million. It also
// keeps memory for the types of each module that it decodes, whether it has them already or not.
const (
	mostTypes           = 400_000 // of all tenants
	mostTypesOfTenant   = 50_000
	mostDecoded         = 512 << 20 // bytes of memory
	mostDecodedOfTenant = 64 << 20
	perTypeByte         = 4
)

// process is what V8 keeps in this process. All gates of a process have it: V8 has one table of types.
var process = newKept()

// kept counts what V8 keeps until the process ends. Any goroutine may call it.
type kept struct {
	mu       sync.Mutex
	sections map[[32]byte]struct{} // hashes of a tenant and a type section that V8 has
	types    map[string]int        // types that a tenant's modules have added
	decoded  map[string]int        // bytes for what V8 has decoded for a tenant
	all      int                   // types of all tenants
	allBytes int
}

func newKept() *kept {
	return &kept{sections: map[[32]byte]struct{}{}, types: map[string]int{}, decoded: map[string]int{}}
}

// countTypes counts the types of a section that the tenant has not had yet. Those that another tenant has had count
// again: nobody's modules depend on what others have.
func (k *kept) countTypes(tenant string, types int, section []byte) error {
	key := sha256.Sum256(append([]byte(tenant+"\x00"), section...))
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.sections[key]; ok {
		return nil
	}
	if n := k.types[tenant] + types; n > mostTypesOfTenant {
		return fmt.Errorf("the modules of this owner have %d types since the process began, at most %d are allowed", n,
			mostTypesOfTenant)
	}
	if k.all+types > mostTypes {
		return errors.New("the process has no room for the types of further modules, until it starts again")
	}
	k.sections[key] = struct{}{}
	k.types[tenant] += types
	k.all += types
	return nil
}

// countDecoded counts so many bytes of types that V8 decodes for a tenant.
func (k *kept) countDecoded(tenant string, size int) error {
	n := perTypeByte * size
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.decoded[tenant]+n > mostDecodedOfTenant {
		return fmt.Errorf("V8 has decoded modules of this owner with %d MB for their types since the process began, "+
			"and no more are allowed", mostDecodedOfTenant>>20)
	}
	if k.allBytes+n > mostDecoded {
		return errors.New("the process has no room to decode further modules, until it starts again")
	}
	k.decoded[tenant] += n
	k.allBytes += n
	return nil
}
