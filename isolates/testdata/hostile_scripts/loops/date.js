// dates formatted without end
// outcome: cpu

export default { fetch() { for (let i = 0;; i++) new Date(i * 1e9).toLocaleString("ar-EG", { timeZone: "Asia/Kolkata" }); } };
