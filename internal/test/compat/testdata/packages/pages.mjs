// Packages that render pages.
import { createElement as h, Suspense, use } from "react";
import { renderToReadableStream, renderToString } from "react-dom/server.edge";
import { createSSRApp, computed, h as vh, ref } from "vue";
import { renderToString as renderVue, renderToWebStream } from "vue/server-renderer";
import { render as renderSvelte } from "svelte/server";
import { renderToString as renderSolid, renderToStringAsync, createComponent, ssr, escape } from "solid-js/web";
import { createResource, createSignal, For, Suspense as SolidSuspense } from "solid-js";
import { h as ph } from "preact";
import { render as renderPreact } from "preact-render-to-string";
import { worker } from "./answers.mjs";

const items = ["<a>", "b & c", "ü"];

export const cases = {
  async react() {
    const late = new Promise((resolve) => setTimeout(resolve, 2, "late"));
    const Late = () => h("b", null, use(late));
    const List = () => h("ul", { className: "list", style: { marginTop: 4 } }, items.map((i) => h("li", { key: i }, i)));
    const stream = await renderToReadableStream(h("main", null, h(List), h(Suspense, { fallback: "wait" }, h(Late))));
    await stream.allReady;
    return [renderToString(h(List)), await new Response(stream).text()];
  },
  async vue() {
    const app = () => createSSRApp({
      setup() {
        const n = ref(2), twice = computed(() => n.value * 2);
        return () => vh("div", { class: { on: true }, style: { color: "red" } }, [String(twice.value), ...items.map((i) => vh("p", i))]);
      },
    });
    return [await renderVue(app()), await new Response(renderToWebStream(app())).text()];
  },
  svelte: () => renderSvelte(($$renderer, { name }) => $$renderer.push(`<p>${name}</p>`), { props: { name: "Ada" } }).body,
  async "solid-js"() {
    const [n] = createSignal(3);
    const List = () => ssr(["<ul>", "</ul>"], escape(createComponent(For, { each: items, children: (i) => ssr(["<li>", "</li>"], escape(i)) })));
    const Late = () => {
      const [data] = createResource(() => Promise.resolve("late"));
      return createComponent(SolidSuspense, { fallback: "wait", get children() { return ssr(["<b>", "</b>"], escape(data())); } });
    };
    return [renderSolid(() => [String(n()), createComponent(List, {})]), (await renderToStringAsync(() => createComponent(Late, {}))).replace(/\s+/g, " ")];
  },
  "preact-render-to-string": () => renderPreact(ph("ul", { class: "x" }, items.map((i) => ph("li", { key: i }, i)))),
};

export default worker(cases);
