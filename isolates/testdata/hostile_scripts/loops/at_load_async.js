// an endless loop of awaits while the module loads
// outcome: cpu
// load

for (;;) await null;
