// a module that throws something huge at load
// outcome: exception

throw new Error("x".repeat(1 << 24));
