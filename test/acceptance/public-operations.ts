/** The operations that need no credential, for the test of every permission. */

/** Public operations, with the reason. A new public route must be added here by hand. */
export const PUBLIC: Readonly<Record<string, string>> = {
  register: 'there is no account yet',
  login: 'there is no key yet',
  logout: 'clears the cookie of a session that may be over',
  redeemLoginCode: 'the code and its verifier are the permission',
  startDeviceLogin: 'there is no key yet; somebody approves it in the console',
  pollDeviceLogin: 'the code is the permission',
  setUp: 'the link is the permission',
  resetPassword: 'the link is the permission',
  requestPasswordReset: 'the answer says nothing; only the mailbox gets a link',
  requestRegistration: 'the answer says nothing; only the mailbox gets a link',
  confirmEmail: 'the link is the permission',
  showInvitation: 'the link is the permission',
  join: 'the link is the permission',
  getSystemStatus: 'seed §5.6',
  listDatabaseEngines: 'what one could have, before one registers',
  listInstanceTypes: 'what one could have, before one registers',
  getStart: 'where one begins',
  getIndex: 'where one begins',
  getHealth: 'for supervisors',
  getReadiness: 'for load balancers',
  getMetrics: 'for Prometheus',
  getOpenApi: 'documentation',
  getDocs: 'documentation',
  getSetupPage: 'shows a form; the link is the permission',
};
