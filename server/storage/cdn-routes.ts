/** The data origin: users' files by signed link, apart from the origin where sessions live. */
import { Type } from 'typebox';
import { defineRoute, type Route } from '../http/route.ts';
import type { Contents } from './contents.ts';
import { sendDownload } from './download.ts';
import type { Links } from './links.ts';

/** Caches may keep the current bytes this long before they ask again whether they changed. */
const CURRENT_MAX_AGE_SECONDS = 60;

export function cdnRoutes({ contents, links }: { contents: Contents; links: Links }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/cdn/{id}/{fileName}',
      name: 'cdnDownload',
      tag: 'storage',
      summary: 'Read an object by its signed link',
      permission: 'public',
      params: Type.Object({ id: Type.String(), fileName: Type.String() }),
      query: Type.Object({
        version_id: Type.Optional(Type.String()),
        expires: Type.Optional(Type.Integer()),
        signature: Type.Optional(Type.String()),
      }),
      responses: { 200: Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' }) },
      produces: 'bytes',
      errors: ['invalid_link', 'object_not_found'],
      handler: async ({ params, query, request, reply }) => {
        const secondsLeft = links.check(params.id, query);
        const content = await contents.findForLink(params.id, query.version_id);
        const caching =
          query.version_id === undefined
            ? `public, max-age=${Math.min(CURRENT_MAX_AGE_SECONDS, secondsLeft)}`
            : `public, max-age=${secondsLeft}, immutable`;
        await sendDownload({ contents, content, request, reply, caching, kind: 'inline' });
      },
    }),
  ];
}
