// toLocaleString of dates and numbers
// outcome: cpu, memory

export default { fetch() { for (let i = 0; ; i++) { new Date(i * 1e9).toLocaleString("fa"); (i * 1.5).toLocaleString("mr"); } } };
