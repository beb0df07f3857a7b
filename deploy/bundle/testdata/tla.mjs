const table = await Promise.resolve({ answer: 42 });

export default {
  task: () => table.answer,
};
