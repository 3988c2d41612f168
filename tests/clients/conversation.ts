// One conversation through a client that is typed by the schema: asked back, answered, read again.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Reply = components["schemas"]["Reply"];

export async function converse(address: string, key: string): Promise<string> {
  const client = createClient<paths>({
    baseUrl: address,
    headers: { Authorization: `Bearer ${key}` },
  });

  async function ask(message: string): Promise<Reply> {
    const body = { message, session_id: "typescript", collections: ["teapot"] };
    const { data, error } = await client.POST("/api/chat/", { body });
    if (data === undefined) throw new Error(error.detail);
    return data;
  }

  const askedBack = await ask("How do I set it up?");
  const answered = await ask("the WordPress plugin");
  const path = { turn_id: answered.turn_id };
  const { data: again } = await client.GET("/api/turns/{turn_id}/", { params: { path } });
  const query = { collection: "teapot" };
  const { data: documents } = await client.GET("/api/documents/", { params: { query } });
  const { error: refusal } = await client.GET("/api/search/", {
    params: { query: { q: "teapot", collection: ["nowhere"] } },
  });
  return JSON.stringify({
    statuses: [askedBack.status, answered.status],
    reply: answered.reply,
    citations: answered.citations.map((citation) => citation.source),
    same: again?.reply === answered.reply,
    documents: documents?.results.map((document) => document.title),
    refusal: refusal?.code,
  });
}
