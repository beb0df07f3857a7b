// escape sequences and line ends in lines
// outcome: ok

export default { fetch() { console.log("\x1b[2J\x1b]0;x\x07\r\n{\"level\":\"fatal\"}\u2028\0\ud800"); return new Response("ok"); } };
