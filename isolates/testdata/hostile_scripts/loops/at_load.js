// a loop while the module loads
// outcome: cpu

for (;;);
