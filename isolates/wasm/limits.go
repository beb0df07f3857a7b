package wasm

// Bounds of a module. Beyond them Check refuses it, with the number and the bound.
const (
	MaxModule = 16 << 20 // bytes of a module

	// V8's compilers do work for each value that a function holds, at each place where its control flow splits or joins.
	// A program of 35 KB can take seconds and gigabytes that nothing interrupts and nothing else counts.
	// An instruction that fills, copies or grows memory, a table or an array counts 2000: nothing interrupts it.
	MaxWorkFunction = 2_500_000  // values × branches of a function
	MaxWorkModule   = 50_000_000 // of all functions together

	MaxBody      = 1 << 20 // bytes of a function's body
	MaxLocals    = 50_000  // variables of a function with its parameters, as V8 has it
	MaxNesting   = 20_000  // blocks within each other
	MaxSignature = 100     // parameters and results of a function or block, together
	MaxName      = 10_000  // bytes of a name

	// V8 keeps the types of all modules until the process ends.
	MaxTypes      = 10_000
	MaxTypeBytes  = 512 << 10 // bytes of the type section
	MaxFields     = 2_000     // fields of a structure, as V8 has it
	MaxFixedArray = 10_000    // values of an array that are on the stack, as V8 has it

	MaxFunctions       = 100_000 // with imported ones, as the following
	MaxGlobals         = 100_000
	MaxTags            = 1_000
	MaxTables          = 100
	MaxTable           = 1_000_000 // entries of all tables together, at first and at most
	MaxMemory          = 8_192     // pages of 64 KiB at first: 512 MiB
	MaxImports         = 10_000
	MaxExports         = 100_000
	MaxElementSegments = 10_000
	MaxElements        = 1_000_000 // entries of all element segments together
	MaxDataSegments    = 100_000   // as V8 has it
	MaxCustomSections  = 1_000
)
