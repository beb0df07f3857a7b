// Clients of databases and of mail, as their authors ship them, over node:net and node:tls.
import { once } from "node:events";
import Redis from "ioredis";
import mysql from "mysql2/promise";
import nodemailer from "nodemailer";
import pg from "pg";

const PATIENCE = 240_000; // ms: drivers give up long before a slow machine has connected

const programs = {
  async pg({ port, tlsCA }) {
    const config = { host: "127.0.0.1", port, user: "ada", password: "secret", database: "postgres", connectionTimeoutMillis: PATIENCE };
    const client = new pg.Client(config);
    await client.connect();
    await client.query("create table if not exists notes (id serial primary key, text text, at timestamptz, data bytea)");
    await client.query("truncate notes");
    const bytes = new Uint8Array(100_000).map((_, i) => i % 251);
    await client.query("insert into notes (text, at, data) values ($1, $2, $3), ($4, $2, null)", ["äö", new Date(0), Buffer.from(bytes), "two"]);
    const { rows } = await client.query({ text: "select text, at, length(data) as n, data from notes order by id", name: "all" });
    const same = Buffer.compare(rows[0].data, Buffer.from(bytes)) === 0;
    const failed = await client.query("select nothing").catch((e) => e.code);
    const sum = (await client.query("select sum(n)::int as sum from generate_series(1, 20000) n")).rows[0].sum;
    const many = (await client.query("select repeat('x', 100) as x from generate_series(1, 5000)")).rows.length;
    await client.end();
    const pool = new pg.Pool({ ...config, max: 4, ssl: { ca: tlsCA, servername: "db.test" } });
    const all = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((n) => pool.query("select $1::int * 2 as n", [n])));
    const secure = (await pool.query("select ssl, version from pg_stat_ssl where pid = pg_backend_pid()")).rows[0];
    await pool.end();
    const wrong = await new pg.Client({ ...config, password: "wrong" }).connect().catch((e) => e.code);
    return { texts: rows.map((r) => r.text), at: rows[0].at, n: rows[0].n, same, failed, sum, many, twice: all.map((r) => r.rows[0].n), secure, wrong };
  },
  async mysql({ port, tlsCA }) {
    const config = { host: "127.0.0.1", port, user: "ada", password: "secret", database: "test", connectTimeout: PATIENCE, disableEval: true };
    const db = await mysql.createConnection(config);
    await db.query("create or replace table notes (id int auto_increment primary key, text text, n double)");
    await db.execute("insert into notes (text, n) values (?, ?), (?, ?)", ["äö", 1.5, "two", 2]);
    const [rows] = await db.execute("select text, n from notes where n > ? order by id", [1]);
    const failed = await db.query("select nothing").catch((e) => e.code);
    const [many] = await db.query("select repeat('x', 100) as x from seq_1_to_5000");
    await db.end();
    const secure = await mysql.createConnection({ ...config, ssl: { ca: tlsCA, rejectUnauthorized: true, verifyIdentity: false } });
    const [[cipher]] = await secure.query("show status like 'Ssl_version'");
    await secure.end();
    const wrong = await mysql.createConnection({ ...config, password: "wrong" }).catch((e) => e.code);
    return { rows, failed, many: many.length, secure: cipher.Value, wrong };
  },
  async redis({ port, tlsPort, tlsCA }) {
    const db = new Redis({ host: "127.0.0.1", port, password: "secret", connectTimeout: PATIENCE, maxRetriesPerRequest: 1 });
    await db.set("name", "äö");
    const pipeline = await db.pipeline().incr("n").incr("n").get("name").exec();
    const sub = db.duplicate();
    await sub.subscribe("news");
    const message = once(sub, "message");
    await db.publish("news", "hello");
    const [channel, text] = await message;
    const big = "x".repeat(300_000);
    await db.set("big", big);
    const same = (await db.get("big")) === big;
    await sub.quit();
    await db.quit();
    const secure = new Redis({ host: "127.0.0.1", port: tlsPort, password: "secret", connectTimeout: PATIENCE, tls: { ca: tlsCA, servername: "db.test" } });
    const name = await secure.get("name");
    secure.disconnect();
    return { counts: pipeline.map(([, v]) => v), channel, text, same, name };
  },
  async mail({ port }) {
    const transport = nodemailer.createTransport({ host: "127.0.0.1", port, secure: false, ignoreTLS: true,
      connectionTimeout: PATIENCE, greetingTimeout: PATIENCE });
    const sent = await transport.sendMail({
      from: "ada@example.com", to: "bob@example.com", subject: "Grüße", text: "hello",
      attachments: [{ filename: "a.txt", content: "attached" }],
    });
    transport.close();
    return { accepted: sent.accepted, response: sent.response.slice(0, 3) };
  },
};

export default {
  async task(event) {
    const { name, ...options } = event.payload;
    return programs[name](options);
  },
};
