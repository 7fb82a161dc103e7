/** Calls of accounts, administrators, billing, mail and webhooks that accept an Idempotency-Key. */
import type { Answer } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import { type KeptCases, type OneKeyKit, PASSWORD } from './one-key-kit.ts';

const HOOK = 'http://127.0.0.1:9';
const ACCOUNTS = '/api/admin/accounts';

const newHook = async (kit: OneKeyKit, n: string) =>
  `/api/webhooks/${(await kit.made('/api/webhooks', { url: `${HOOK}/${n}` })).id}`;

/** The path of a new account, for administrators. */
const newAccount = async (kit: OneKeyKit, n: string) => `${ACCOUNTS}/${(await kit.account(n)).id}`;

async function newSession(kit: OneKeyKit, n: string) {
  const { api_key: key, username } = await kit.account(n);
  await kit.logIn(username);
  const { body } = await kit.nodes[0].as(key).call('/api/account/sessions');
  return { key, path: `/api/account/sessions/${body[0].id}` };
}

const OWN: KeptCases = {
  register: {
    ask: (kit, n) => ({
      path: '/api/register',
      key: null,
      json: { username: n, email: `${n}@example.org`, password: PASSWORD },
      effects: () => kit.countOf(`${ACCOUNTS}?limit=1000`, ({ username }) => username === n),
    }),
  },
  updateAccount: {
    ask: async (kit, n) => ({
      path: '/api/account',
      method: 'PATCH',
      key: (await kit.account(n)).api_key,
      json: { email: `${n}@example.net`, current_password: PASSWORD, mail_about: ['credits'] },
    }),
  },
  rotateApiKey: {
    ask: async (kit, n) => ({
      path: '/api/account/api-key',
      key: (await kit.account(n)).api_key,
      json: {},
      nextKey: ({ body }: Answer) => body.api_key,
    }),
  },
  createAccessKey: {
    ask: (kit, n) => ({
      path: '/api/account/access-keys',
      json: { name: n, scopes: ['storage:read'] },
      effects: () => kit.countOf('/api/account/access-keys', ({ name }) => name === n),
    }),
  },
  deleteAccessKey: {
    ask: async (kit, n) => {
      const { id } = await kit.made('/api/account/access-keys', { name: n, scopes: ['storage:read'] });
      return { path: `/api/account/access-keys/${id}`, method: 'DELETE' };
    },
  },
  endSession: {
    ask: async (kit, n) => ({ method: 'DELETE', ...(await newSession(kit, n)) }),
  },
  endOtherSessions: {
    ask: async (kit, n) => {
      const { key } = await newSession(kit, n);
      return { path: '/api/account/sessions', method: 'DELETE', key };
    },
  },
  resetPassword: {
    ask: async (kit, n) => {
      const { url } = await kit.made(`${await newAccount(kit, n)}/reset-link`);
      const json = { token: url.split('#token=')[1], password: `${PASSWORD} 2` };
      return { path: '/api/reset-password', key: null, json };
    },
  },
  requestPasswordReset: {
    ask: async (kit, n) => ({
      path: '/api/reset-password/request',
      key: null,
      json: { email: (await kit.account(n)).email },
    }),
  },
  requestEmailConfirmation: {
    ask: async (kit, n) => {
      const { api_key: key, email } = await kit.account(n);
      const sent = () => kit.countOf('/api/admin/mails?limit=1000', ({ to }) => to === email);
      // The first was sent to the new account.
      const effects = async () => (await sent()) - 1;
      return { path: '/api/account/confirm-email/request', key, effects };
    },
  },
  confirmEmail: {
    ask: async (kit, n) => ({
      path: '/api/confirm-email',
      key: null,
      json: { token: await kit.confirmation(await kit.account(n)) },
    }),
  },
  // The answer is the same for every address, and there is no account here.
  requestRegistration: {
    ask: (_, n) => ({
      path: '/api/register/request',
      key: null,
      json: { email: `${n}@example.org` },
      refusedWith: 'registration_closed',
    }),
  },
  showInvitation: {
    reads: true,
    ask: async (kit) => {
      const { url } = await kit.made('/api/admin/invitations');
      return { path: '/api/join/invitation', key: null, json: { token: url.split('#token=')[1] } };
    },
  },
  join: {
    ask: async (kit, n) => {
      const { id, url } = await kit.made('/api/admin/invitations', { max_uses: 5 });
      const token = url.split('#token=')[1];
      return {
        path: '/api/join',
        key: null,
        json: { token, username: n, email: `${n}@example.org`, password: PASSWORD },
        effects: async () =>
          (await kit.seen('/api/admin/invitations')).find((item: { id: string }) => item.id === id).uses,
      };
    },
  },
};

const ADMINISTRATION: KeptCases = {
  adminCreateAccount: {
    ask: (kit, n) => ({
      path: ACCOUNTS,
      json: { username: n, email: `${n}@example.org`, password: PASSWORD },
      effects: () => kit.countOf(`${ACCOUNTS}?limit=1000`, ({ username }) => username === n),
    }),
  },
  adminChangeAccount: {
    ask: async (kit, n) => ({
      path: await newAccount(kit, n),
      method: 'PATCH',
      json: { email: `${n}@example.com`, quotas: { vms: 3 }, expires_at: '2999-07-31 22:00:00' },
    }),
  },
  adminAdjustCredits: {
    ask: async (kit, n) => {
      const { id, credits } = await kit.account(n);
      return {
        path: `${ACCOUNTS}/${id}/credits`,
        json: { amount: 1, reason: 'test' },
        effects: async () => (await kit.seen(`${ACCOUNTS}/${id}`)).credits - credits,
      };
    },
  },
  adminSuspendAccount: {
    ask: async (kit, n) => ({ path: `${await newAccount(kit, n)}/suspend`, json: { reason: 'test' } }),
  },
  adminResumeAccount: {
    ask: async (kit, n) => {
      const path = await newAccount(kit, n);
      await kit.made(`${path}/suspend`, { reason: 'test' });
      return { path: `${path}/resume` };
    },
  },
  adminShowApiKey: {
    ask: async (kit, n) => ({ path: `${await newAccount(kit, n)}/api-key` }),
  },
  adminMailResetLink: {
    ask: async (kit, n) => {
      const account = await kit.account(n);
      await kit.made('/api/confirm-email', { token: await kit.confirmation(account) });
      return { path: `${ACCOUNTS}/${account.id}/reset-link/mail` };
    },
  },
  adminRemoveAccount: {
    ask: async (kit, n) => ({ path: `${await newAccount(kit, n)}/remove`, json: { reason: 'test' } }),
  },
  adminKeepAccount: {
    ask: async (kit, n) => {
      const path = await newAccount(kit, n);
      await kit.made(`${path}/remove`, { reason: 'test' });
      return { path: `${path}/keep` };
    },
  },
  adminRevokeInvitation: {
    ask: async (kit) => {
      const { id } = await kit.made('/api/admin/invitations');
      return { path: `/api/admin/invitations/${id}`, method: 'DELETE' };
    },
  },
  adminSendTestMail: {
    ask: (kit, n) => ({
      path: '/api/admin/mail/test',
      json: { to: `${n}@example.org` },
      effects: () => kit.countOf('/api/admin/mails?limit=1000', ({ to }) => to === `${n}@example.org`),
    }),
  },
};

const BILLING: KeptCases = {
  setSpendCap: {
    ask: async (kit, n) => ({
      path: '/api/billing/cap',
      method: 'PATCH',
      key: (await kit.account(n)).api_key,
      json: { cap: 100, warn_percent: [50] },
    }),
  },
  adminCreatePlan: {
    ask: (kit, n) => ({
      path: '/api/admin/plans',
      json: { name: n },
      effects: () => kit.countOf('/api/admin/plans', ({ name }) => name === n),
    }),
  },
  adminChangePlan: {
    ask: async (kit, n) => {
      await kit.made('/api/admin/plans', { name: n });
      return { path: `/api/admin/plans/${n}`, method: 'PATCH', json: { monthly_credits: 7 } };
    },
  },
  adminDeletePlan: {
    ask: async (kit, n) => {
      await kit.made('/api/admin/plans', { name: n });
      return { path: `/api/admin/plans/${n}`, method: 'DELETE' };
    },
  },
  adminSetPrice: {
    once: true,
    ask: () => ({ path: '/api/admin/prices', json: { meter: 'egress', price: 0.02 } }),
  },
  startLedgerVerification: { once: true, ask: () => ({ path: '/api/admin/ledger/verify', json: {} }) },
};

const WEBHOOKS: KeptCases = {
  createWebhook: {
    ask: (kit, n) => ({
      path: '/api/webhooks',
      json: { url: `${HOOK}/${n}` },
      effects: () => kit.countOf('/api/webhooks', ({ url }) => url === `${HOOK}/${n}`),
    }),
  },
  changeWebhook: {
    ask: async (kit, n) => ({
      path: await newHook(kit, n),
      method: 'PATCH',
      json: { description: 'changed', enabled: false },
    }),
  },
  deleteWebhook: { ask: async (kit, n) => ({ path: await newHook(kit, n), method: 'DELETE' }) },
  rotateWebhookSecret: {
    ask: async (kit, n) => ({ path: `${await newHook(kit, n)}/rotate-secret`, json: { overlap_seconds: 9 } }),
  },
  testWebhook: {
    ask: async (kit, n) => {
      const path = await newHook(kit, n);
      return { path: `${path}/test`, effects: () => kit.countOf(`${path}/deliveries`, () => true) };
    },
  },
  replayWebhookDelivery: {
    ask: async (kit, n) => {
      const path = await newHook(kit, n);
      const { id } = await kit.made(`${path}/test`);
      await eventually('the first attempt', async () =>
        (await kit.seen(`${path}/deliveries`)).every(({ attempts }: { attempts: [] }) => attempts.length > 0),
      );
      return { path: `${path}/deliveries/${id}/replay` };
    },
  },
  recoverWebhook: {
    ask: async (kit, n) => ({
      path: `${await newHook(kit, n)}/recover`,
      json: { since: '2026-01-01 00:00:00' },
    }),
  },
};

export const ACCOUNT_CASES: KeptCases = { ...OWN, ...ADMINISTRATION, ...BILLING, ...WEBHOOKS };
