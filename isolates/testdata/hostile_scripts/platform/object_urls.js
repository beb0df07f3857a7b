// object URLs of large Blobs without end
// outcome: exception, memory, cpu

export default { async fetch() { for (let i = 0; ; i++) { const url = URL.createObjectURL(new Blob([new Uint8Array(1 << 20)])); await fetch(url); } } };
