/** The set-up link: it works once, and creates the first administrator. */
import { pageHeaders } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json-schema.ts';
import * as shapes from './schema.ts';
import type { SetupLinks } from './setup-links.ts';
import { ENDED_LINK_PAGE, SETUP_PAGE } from './setup-page.ts';

export interface LinkRoutesDeps {
  readonly setupLinks: SetupLinks;
  /** Base URL of the API, without a slash at the end. */
  readonly apiUrl: () => string;
}

/** Routes that create the first administrator. */
export function setupRoutes({ setupLinks, apiUrl }: LinkRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/admin/setup-link',
      name: 'adminCreateSetupLink',
      isRepeatable: true,
      tag: 'admin',
      summary: 'Create a set-up link',
      description:
        'For the operator, while there is no administrator; used by `cloudlet admin setup-link`. The link ' +
        'works once, for 30 minutes; earlier links stop working.',
      permission: 'admin',
      responses: { 201: shapes.SetupLink },
      errors: ['administrator_exists'],
      handler: async () => ({ url: `${apiUrl()}/setup?token=${await setupLinks.createSetupLink()}` }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/setup',
      name: 'setUp',
      tag: 'accounts',
      summary: 'Create the first administrator with the set-up link',
      permission: 'public',
      body: shapes.SetupBody,
      responses: { 201: shapes.Account },
      errors: ['invalid_link', 'username_taken', 'email_taken', 'overloaded'],
      handler: (call) => {
        const { token, username, email, password } = call.body;
        const { address } = call.request;
        return setupLinks.setUp(call, token, { username, email, password, address });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/setup',
      name: 'getSetupPage',
      tag: 'accounts',
      summary: 'Page of the one-time set-up link',
      permission: 'public',
      query: shapes.SetupQuery,
      responses: { 200: Type.String() },
      produces: 'html',
      handler: async ({ query: { token }, request }) => {
        const page = (await setupLinks.isGood(token ?? '')) ? SETUP_PAGE : ENDED_LINK_PAGE;
        Object.assign(request.responseHeaders, pageHeaders(page));
        return page;
      },
    }),
  ];
}
