/** Shared links over REST: create, list, end. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { NewShare, Share } from '../schema.ts';
import type { Shares } from './shares.ts';

export interface ShareRoutesDeps {
  readonly shares: Shares;
}

const SHARES = '/api/shares';

export function shareRoutes({ shares }: ShareRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: SHARES,
      name: 'createShare',
      audit: { detail: ['bucket', 'name', 'expires_in', 'max_downloads'] },
      tag: 'storage',
      summary: 'Share a file or a folder by a link that you can revoke',
      description:
        'Anybody with the link reads the current bytes under the name, without an account; a folder is shown as a list, ' +
        'and downloads as one zip. With `max_downloads` each request for bytes counts, and ranges are not honoured. A ' +
        'link created by an access key ends with the key, which needs `storage:read` too.',
      permission: 'storage:write',
      body: NewShare,
      responses: { 201: Share },
      errors: [
        'bucket_not_found',
        'object_not_found',
        'invalid_object_name',
        'customer_key_required',
        'quota_exceeded',
        'scope_required',
      ],
      handler: (call) => {
        const { principal, record, body, request } = call;
        return shares.create({ principal, record, address: request.address }, body);
      },
    }),
    defineRoute({
      method: 'GET',
      path: SHARES,
      name: 'listShares',
      tag: 'storage',
      summary: 'List your shared links, newest first',
      description: 'Expired links are listed for 30 days.',
      permission: 'storage:read',
      responses: { 200: Type.Array(Share) },
      handler: ({ principal }) => shares.list(principal),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${SHARES}/{share_id}`,
      name: 'endShare',
      tag: 'storage',
      summary: 'Revoke a shared link immediately',
      permission: 'storage:write',
      params: Type.Object({ share_id: Type.String() }),
      responses: { 200: Share },
      errors: ['share_not_found'],
      handler: (call) => shares.end(call, call.params.share_id),
    }),
  ];
}
