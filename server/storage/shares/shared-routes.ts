/** The data origin serves visitors of shared links: bytes, a folder as a page, or as a zip. */
import { closeOf } from '../../http/bodies/received-file.ts';
import { sendStream } from '../../http/bodies/send-content.ts';
import { ownResponse } from '../../http/exchange.ts';
import { sendPage } from '../../http/page.ts';
import { contentDisposition } from '../../http/response.ts';
import { defineRoute, type Route, type RouteInput } from '../../http/route.ts';
import { isAppError } from '../../platform/errors.ts';
import { Type } from '../../platform/json/json-schema.ts';
import type { Archives } from '../archives/archives.ts';
import { customerKeyRequired } from '../keys/customer-key.ts';
import type { Browsing } from '../listing/browsing.ts';
import type { Listing } from '../listing/listing.ts';
import { kindOf, sendDownload } from '../objects/content-routes.ts';
import type { Downloads } from '../objects/downloads.ts';
import { notFound } from '../objects/objects.ts';
import { endedPage, folderPage } from './share-page.ts';
import { isFolderName, type OpenShare, type Shares, titleOf } from './shares.ts';

export interface SharedRoutesDeps {
  readonly shares: Shares;
  readonly browsing: Pick<Browsing, 'page'>;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly downloads: Downloads;
  readonly archives: Pick<Archives, 'open'>;
}

/** Names on a page of a folder. */
const PAGE = 500;
const Bytes = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' });
const Params = Type.Object({ share_id: Type.String(), signature: Type.String(), title: Type.String() });
const Query = Type.Object({
  path: Type.Optional(
    Type.String({ description: 'Below a shared folder: a file, or a folder that ends in "/"' }),
  ),
  zip: Type.Optional(Type.String({ description: 'The folder as a zip' })),
  cursor: Type.Optional(Type.String()),
});
type Input = RouteInput<{ share_id: string; signature: string }, Asked, unknown>;
type Asked = { path?: string; zip?: string; cursor?: string };

export function sharedRoutes(deps: SharedRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/cdn/shared/{share_id}/{signature}/{title}',
      name: 'openShared',
      audit: 'data',
      tag: 'storage',
      summary: 'Open a shared link',
      description: 'Send the password of the link, if any, by HTTP Basic authentication, with any user name.',
      permission: 'public',
      params: Params,
      query: Query,
      responses: { 200: Bytes },
      produces: 'bytes',
      errors: [
        'invalid_link',
        'share_password_required',
        'object_not_found',
        'customer_key_required',
        'invalid_cursor',
        'data_corrupted',
        'overloaded',
      ],
      handler: (input) => visit(deps, input),
    }),
  ];
}

async function visit(deps: SharedRoutesDeps, input: Input): Promise<void> {
  const { request, reply } = input;
  Object.assign(request.responseHeaders, {
    'cache-control': 'private, no-store',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
  });
  try {
    await answer(deps, input);
  } catch (error) {
    // People open these links: they get a page instead of problem details.
    if (!isAppError(error, 'invalid_link') || request.headers.accept?.includes('text/html') !== true)
      throw error;
    sendPage(request, reply, { html: endedPage(), status: 403 });
  }
}

async function answer(deps: SharedRoutesDeps, { params, query, request, reply, data }: Input): Promise<void> {
  const { share_id: shareId, signature } = params;
  const { address } = request;
  const share = await deps.shares.open({ shareId, signature, password: basicPassword(request), address });
  const { row, holder } = share;
  ownResponse(reply.raw, holder.accountId);
  const isFolder = isFolderName(row.name);
  const name = isFolder ? row.name + (query.path ?? '') : row.name;
  const place = { bucket: row.bucket, prefix: name };
  if (!isFolderName(name)) return sendFile(deps, { share, name, request, reply, data });
  if (query.zip !== undefined) {
    const archive = await deps.archives.open({ principal: holder, data, signal: closeOf(reply) }, place);
    if (request.method !== 'HEAD') await deps.shares.count(share);
    const headers = request.responseHeaders;
    headers['content-type'] = 'application/zip';
    headers['content-disposition'] = contentDisposition('attachment', archive.fileName);
    return sendStream(request, reply, { status: 200, headers, read: archive.send });
  }
  const { cursor } = query;
  const more = cursor === undefined ? {} : { cursor };
  const page = await deps.browsing.page(holder, row.bucket, { prefix: name, limit: PAGE, ...more });
  const html = folderPage({ title: titleOf(row), path: query.path ?? '', ...page });
  sendPage(request, reply, { html, status: 200 });
}

interface File extends Pick<Input, 'request' | 'reply' | 'data'> {
  readonly share: OpenShare;
  readonly name: string;
}

async function sendFile(deps: SharedRoutesDeps, { share, name, request, reply, data }: File): Promise<void> {
  const { downloads, listing, shares } = deps;
  const { row, holder } = share;
  const bucket = await listing.bucketFor(holder, row.bucket, name);
  const found = await downloads.findNamed(holder, bucket, { name });
  if (found === undefined || !('content' in found)) throw notFound(name);
  const { content } = found;
  if (content.row.customer !== null) throw customerKeyRequired(name);
  // Each range would be its own download, so the whole file is sent.
  if (row.max_downloads !== null) for (const header of CONDITIONS) delete request.headers[header];
  if (request.method !== 'HEAD' && isBegin(request.headers.range)) await shares.count(share);
  await sendDownload(
    { request, reply, data },
    { downloads, content, caching: 'private, no-store', kind: kindOf(content.mimeType) },
  );
}

const CONDITIONS = ['range', 'if-none-match', 'if-modified-since'];

/** Video players request many ranges; only the first is counted as a download. */
const isBegin = (range: string | undefined) => range === undefined || /^bytes=0*-/.test(range);

function basicPassword({ headers }: Input['request']): string | undefined {
  const [, credentials = ''] = /^basic +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const text = Buffer.from(credentials, 'base64').toString('utf8');
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : undefined;
}
