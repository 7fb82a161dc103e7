/** From content to an HTTP answer. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { contentDisposition } from '../http/content-disposition.ts';
import { sendContent } from '../http/send-content.ts';
import type { Content, Contents } from './contents.ts';

export interface Download {
  readonly contents: Contents;
  readonly content: Content;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Cache-Control. */
  readonly caching: string;
  readonly kind: 'attachment' | 'inline';
}

/** Types a browser shows without running anything; all others are saved, not opened. */
const SHOWN = /^(image\/(?!svg)|audio\/|video\/|text\/plain\b|text\/css\b|font\/|application\/(json|wasm)\b)/;

export async function sendDownload({
  contents,
  content,
  request,
  reply,
  caching,
  kind,
}: Download): Promise<void> {
  if (request.method === 'GET') contents.touch(content);
  const shown = kind === 'inline' && SHOWN.test(content.mimeType) ? 'inline' : 'attachment';
  await sendContent(request, reply, {
    ...content,
    headers: { 'content-disposition': contentDisposition(shown, content.name), 'cache-control': caching },
    read: (range, sink, signal) => contents.read(content, range, sink, signal),
  });
}
