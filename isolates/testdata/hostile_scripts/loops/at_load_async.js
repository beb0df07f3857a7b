// an endless loop of awaits while the module loads
// outcome: cpu

for (;;) await null;
