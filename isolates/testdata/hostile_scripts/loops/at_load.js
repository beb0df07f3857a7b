// a loop while the module loads
// outcome: cpu
// load

for (;;);
