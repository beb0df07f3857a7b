// catch and finally around every loop, nested
// outcome: cpu

export default { fetch() { for (;;) try { for (;;) try { for (;;); } catch { for (;;); } finally { for (;;); } } catch { for (;;); } finally { continue; } } };
