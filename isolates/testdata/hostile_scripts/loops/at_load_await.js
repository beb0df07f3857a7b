// a top-level await that nothing will end
// outcome: timeout

await new Promise(() => {});
