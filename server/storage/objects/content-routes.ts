/** Bytes of objects over REST: downloads, and signed links on both origins. */

import { sendContent } from '../../http/bodies/send-content.ts';
import { ownResponse } from '../../http/exchange.ts';
import { isLoopback } from '../../http/origins.ts';
import { contentDisposition } from '../../http/response.ts';
import { defineRoute, type Route, type RouteInput, TicketField } from '../../http/route.ts';
import { formatTime } from '../../platform/clock.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { CdnLink, ObjectPath } from '../schema.ts';
import type { Content, Downloads } from './downloads.ts';
import type { Links } from './links.ts';

export interface ContentRoutesDeps {
  readonly downloads: Downloads;
  readonly links: Links;
  /** URL of the data origin, `http://host:port`. */
  readonly dataUrl: () => string;
}

const LINK_SECONDS_DEFAULT = 24 * 3600;
const LINK_SECONDS_MAX = 365 * 24 * 3600;
/** Time for which caches may keep the current bytes before they revalidate. */
const CURRENT_MAX_AGE_SECONDS = 60;
/**
 * Time for which caches may keep a version's bytes, which never change, even after the link's key has ended.
 */
const VERSION_MAX_AGE_SECONDS = 3600;
const Bytes = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' });
const LinkQuery = Type.Object({
  version_id: Type.Optional(Type.String()),
  key_id: Type.Optional(Type.String()),
  expires: Type.Optional(Type.Integer()),
  signature: Type.Optional(Type.String()),
});

/** Routes of the API origin. */
export function contentRoutes(deps: ContentRoutesDeps): Route[] {
  return [downloadRoute(deps), linkRoute(deps)];
}

interface CdnRoutesDeps extends Pick<ContentRoutesDeps, 'downloads' | 'links'> {
  /** URL of the console, `http://host:port`. */
  readonly apiUrl: () => string;
}

/** Routes of the data origin: users' files by signed link, separate from the origin with sessions. */
export function cdnRoutes({ downloads, links, apiUrl }: CdnRoutesDeps): Route[] {
  const route = defineRoute({
    method: 'GET',
    path: '/cdn/{id}/{fileName}',
    name: 'cdnDownload',
    audit: 'data',
    tag: 'storage',
    summary: 'Download an object by signed link',
    permission: 'public',
    params: Type.Object({ id: Type.String(), fileName: Type.String() }),
    query: LinkQuery,
    responses: { 200: Bytes },
    produces: 'bytes',
    errors: ['invalid_link', 'object_not_found', 'version_not_found', 'customer_key_required'],
    handler: async (input) => {
      const { params, query, request, reply } = input;
      const { holder, secondsLeft } = await links.check(params.id, query);
      ownResponse(reply.raw, holder.accountId);
      const content = await downloads.find(holder, params.id, query.version_id);
      const caching =
        query.version_id === undefined
          ? `public, max-age=${Math.min(CURRENT_MAX_AGE_SECONDS, secondsLeft)}`
          : `public, max-age=${Math.min(VERSION_MAX_AGE_SECONDS, secondsLeft)}, immutable`;
      const kind = kindOf(content.mimeType);
      if (content.mimeType === PDF) allowFrame(request.responseHeaders, apiUrl());
      await sendDownload(input, { downloads, content, caching, kind });
    },
  });
  return [route];
}

function downloadRoute({ downloads, links }: ContentRoutesDeps): Route {
  return defineRoute({
    method: 'GET',
    path: '/api/storage/{id}/download',
    name: 'downloadObject',
    audit: 'data',
    tag: 'storage',
    summary: 'Download an object, or one of its versions',
    description: 'Supports HEAD, Range, If-None-Match and If-Range. Needs a key, a ticket or a signed link.',
    permission: 'storage:read',
    params: ObjectPath,
    query: Type.Object({ ...LinkQuery.properties, ticket: TicketField }),
    responses: { 200: Bytes },
    produces: 'bytes',
    acceptsTicket: true,
    acceptsLink: (request) => (request.query as { signature?: unknown }).signature !== undefined,
    errors: [
      'object_not_found',
      'version_not_found',
      'customer_key_required',
      'invalid_link',
      'precondition_failed',
      'range_not_satisfiable',
      'data_corrupted',
    ],
    handler: async (input) => {
      const { principal, params, query, reply } = input;
      const byLink = principal.via === 'nobody';
      const reader = byLink ? (await links.check(params.id, query)).holder : principal;
      ownResponse(reply.raw, reader.accountId);
      const content = await downloads.find(reader, params.id, query.version_id);
      await sendDownload(input, { downloads, content, caching: 'private, no-cache', kind: 'attachment' });
    },
  });
}

function linkRoute({ downloads, links, dataUrl }: ContentRoutesDeps): Route {
  const seconds = { minimum: 1, maximum: LINK_SECONDS_MAX, description: 'Seconds; default: one day' };
  return defineRoute({
    method: 'GET',
    path: '/api/storage/{id}/cdn-url',
    name: 'getCdnUrl',
    tag: 'storage',
    summary: 'Create a signed link on the data origin that needs no key',
    description:
      'The link expires after `expires_in` seconds, or with the key it was created with, if that ends sooner: when it ' +
      'expires, is revoked or is replaced. A link created in a session ends with the account’s own key.',
    permission: 'storage:read',
    params: ObjectPath,
    query: Type.Object({
      expires_in: Type.Optional(Type.Integer(seconds)),
      version_id: Type.Optional(Type.String()),
    }),
    responses: { 200: CdnLink },
    errors: ['object_not_found', 'version_not_found', 'customer_key_required'],
    handler: async ({ principal, params, query }) => {
      const content = await downloads.find(principal, params.id, query.version_id);
      const target = { objectId: params.id, versionId: query.version_id };
      const signed = await links.sign(principal, target, query.expires_in ?? LINK_SECONDS_DEFAULT);
      const lastPart = content.name.slice(content.name.lastIndexOf('/') + 1);
      // Clients resolve paths that end in one of these.
      const fileName = ['', '.', '..'].includes(lastPart) ? 'file' : lastPart;
      return {
        cdn_url: `${dataUrl()}/cdn/${params.id}/${encodeURIComponent(fileName)}?${signed.query}`,
        expires_at: formatTime(signed.expiresAt),
      };
    },
  });
}

interface Download {
  readonly downloads: Downloads;
  readonly content: Content;
  /** Cache-Control. */
  readonly caching: string;
  readonly kind: 'attachment' | 'inline';
}

/** How a browser treats an object that it opens. */
export const kindOf = (mimeType: string): Download['kind'] =>
  SHOWN.test(mimeType) ? 'inline' : 'attachment';

const PDF = 'application/pdf';
/** Types that a browser displays without running anything; all others are downloaded. */
const SHOWN =
  /^(image\/(?!svg)|audio\/|video\/|text\/plain\b|text\/css\b|font\/|application\/(json|wasm|pdf)\b)/;

/** Allows only the console to frame the page. A loopback address has two names. */
function allowFrame(headers: Record<string, string>, apiUrl: string): void {
  const { origin, hostname, port } = new URL(apiUrl);
  const framers = isLoopback(hostname) ? `${origin} http://localhost:${port}` : origin;
  const policy = headers['content-security-policy'] ?? '';
  headers['content-security-policy'] = policy.replace(/frame-ancestors [^;]*/, `frame-ancestors ${framers}`);
}

/** Sends the bytes of a version, or of a range. */
export async function sendDownload(
  { request, reply, data }: Pick<RouteInput<unknown, unknown, unknown>, 'request' | 'reply' | 'data'>,
  { downloads, content, caching, kind }: Download,
): Promise<void> {
  await sendContent(request, reply, {
    ...content,
    disposition: contentDisposition(kind, content.name),
    caching,
    read: (range, sink, signal) => downloads.read(content, { range, sink, signal }),
    onBegin: () => downloads.touch(content, { data }),
    onSent: (bytes) => downloads.countSent(content, bytes),
  });
}
