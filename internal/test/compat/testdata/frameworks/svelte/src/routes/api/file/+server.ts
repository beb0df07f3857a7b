export async function PUT({ platform, request }) {
  await platform.env.FILES.put("note", await request.text());
  return new Response("stored");
}

export async function GET({ platform }) {
  const note = await platform.env.FILES.get("note");
  return new Response(note ? note.body : "nothing is there");
}
