/** What administrators do with accounts, for the test of every permission: see permissions.test.ts. */

export const ADMIN_OPERATIONS = {
  adminCreateSetupLink: {},
  adminListAccounts: {},
  adminCreateAccount: { json: { username: 'someone', email: 'someone@example.org' } },
  adminAdjustCredits: { json: { amount: 1, reason: 'test' } },
  adminSuspendAccount: { json: { reason: 'test' } },
  adminResumeAccount: {},
  adminShowApiKey: {},
  adminCreateResetLink: {},
  adminGetAccount: {},
  adminChangeAccount: { json: {} },
  adminVerifyAudit: {},
  adminCreateInvitation: { json: {} },
  adminImportInvitations: { json: { csv: 'label\nsomebody\n' } },
  adminListInvitations: {},
  adminRevokeInvitation: {},
  adminListNodes: {},
  adminDrainNode: {},
  adminResumeNode: {},
  adminForgetNode: {},
};
