/** `Link: <…>; rel="next"` (RFC 8288) for the page after this one. */
import type { FastifyRequest } from 'fastify';

export function linkHeader(request: FastifyRequest, query: Readonly<Record<string, unknown>>): void {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  const path = request.url.split('?', 1)[0];
  request.answerHeaders.link = `<${path}?${search}>; rel="next"`;
}
