/** @jsxRuntime automatic */
/** @jsxImportSource preact */
import { createContext } from "preact";
import { Suspense, lazy } from "preact/compat";
import { useContext, useId, useMemo, useState } from "preact/hooks";
import { renderToString, renderToStringAsync } from "preact-render-to-string";
import { renderToReadableStream } from "preact-render-to-string/stream";

const Theme = createContext("light");

function Item({ text }: { text: string }) {
  const theme = useContext(Theme);
  const [count] = useState(() => text.length);
  const upper = useMemo(() => text.toUpperCase(), [text]);
  return <li class={theme} data-count={count} style={{ color: "red", marginTop: 4 }}>{upper}</li>;
}

function Page({ items }: { items: string[] }) {
  const id = useId();
  return (
    <Theme.Provider value="dark">
      <ul aria-label="a &quot;b&quot;">{items.map((text) => <Item key={text} text={text} />)}</ul>
      <input disabled id={id ? "given" : ""} value={"<&>"} />
      <p dangerouslySetInnerHTML={{ __html: "<i>raw</i>" }} />
      <>{null}{false}{0}{"text & <tag>"}</>
    </Theme.Provider>
  );
}

const later = () => lazy(() => new Promise<{ default: () => preact.JSX.Element }>((resolve) => {
  setTimeout(() => resolve({ default: () => <b>late</b> }), 10);
}));

export default {
  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const headers = { "content-type": "text/html" };
    const Late = later();
    const late = <main><Suspense fallback={<i>wait</i>}><Late /></Suspense></main>;
    if (url.pathname === "/async") return new Response(await renderToStringAsync(late), { headers });
    if (url.pathname === "/stream") return new Response(renderToReadableStream(late), { headers });
    return new Response(renderToString(<Page items={url.searchParams.getAll("item")} />), { headers });
  },
};
