/** Requests for the examples in openapi.json. test/acceptance/docs.test.ts runs all of them. */

export interface CallSample {
  /** The JSON body. */
  readonly body?: object;
  /** The fields of a form; `@name` is a local file. */
  readonly form?: Readonly<Record<string, string>>;
  /** Starts with the question mark. */
  readonly query?: string;
  /** Additional options for curl. */
  readonly options?: string;
  /** Path parameters that are not ids. */
  readonly path?: Readonly<Record<string, string>>;
  /** Text shown instead of an example if curl cannot make the call. */
  readonly instead?: string;
}

const BUCKET = { path: { name: 'photos' } };
const PLAN = { path: { name: 'pro' } };
const ADA = { username: 'ada', email: 'ada@example.com', password: 'correct horse battery' };

/** The verifier and the challenge from RFC 7636, appendix B. */
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const SSH_KEY = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;
const CALLBACK = 'http://127.0.0.1:7777/callback';
const PROGRAM = { name: 'CLI on laptop', scopes: ['storage:read'] };

/** By operationId; calls without a body and query have none. */
export const CALL_SAMPLES: Readonly<Record<string, CallSample>> = {
  register: { body: ADA },
  login: { body: { username: ADA.username, password: ADA.password } },
  setUp: { body: { token: '$SETUP_TOKEN', ...ADA } },
  resetPassword: { body: { token: '$RESET_TOKEN', password: 'a new password' } },
  showInvitation: { body: { token: '$INVITATION_TOKEN' } },
  join: {
    body: { token: '$INVITATION_TOKEN', username: 'eve', email: 'eve@example.org', password: ADA.password },
  },
  adminCreateInvitation: { body: { label: 'class 7b', max_uses: 30 } },
  requestPasswordReset: { body: { email: ADA.email } },
  requestRegistration: { body: { email: 'ada@example.org' } },
  confirmEmail: { body: { token: '$TOKEN' } },
  adminSendTestMail: { body: { to: 'ada@example.org' } },
  adminImportInvitations: { body: { csv: 'username,email\nben,ben@example.org\n' } },
  updateAccount: { body: { email: 'ada@example.net', current_password: ADA.password } },
  confirmPassword: {
    instead: 'Only sessions use this call, so there is no example with a key.',
  },
  approveLogin: {
    body: {
      redirect_uri: CALLBACK,
      code_challenge: CHALLENGE,
      code_challenge_method: 'S256',
      ...PROGRAM,
      expires_in: 2_592_000,
    },
  },
  redeemLoginCode: { body: { code: '$CODE', code_verifier: VERIFIER, redirect_uri: CALLBACK } },
  startDeviceLogin: { body: PROGRAM },
  findDeviceLogin: { body: { user_code: '$USER_CODE' } },
  decideDeviceLogin: { body: { user_code: '$USER_CODE', approve: true, expires_in: 2_592_000 } },
  pollDeviceLogin: { body: { device_code: '$DEVICE_CODE' } },
  createTicket: { body: { path: '/api/account' } },
  rotateApiKey: { body: { overlap_seconds: 3600 } },
  createAccessKey: { body: { name: 'backup', scopes: ['storage:read'] } },
  createShare: { body: { bucket: 'photos', name: '2026/', expires_in: 604_800 } },
  createEncryptionKey: { body: { id: 'photos-2026' } },
  changeEncryptionKey: { body: { enabled: false } },
  createBucket: { body: { name: 'photos', versioning: true } },
  getBucket: BUCKET,
  changeBucket: { ...BUCKET, body: { versioning: true } },
  deleteBucket: { ...BUCKET, query: '?force=true' },
  listUploads: BUCKET,
  abortUpload: BUCKET,
  getBucketSettings: BUCKET,
  getBucketAccess: { ...BUCKET, query: '?object=2026/photo.jpg' },
  previewBucketLifecycle: { ...BUCKET, body: { lifecycle: [{ enabled: true, prefix: 'tmp/', days: 7 }] } },
  changeBucketSettings: { ...BUCKET, body: { tags: { team: 'photos' } } },
  uploadObject: { ...BUCKET, form: { file: '@photo.jpg', metadata: '{"camera":"X100"}' } },
  listAudit: { query: '?limit=100' },
  exportAccount: { options: '-o account.zip' },
  adminExportAccount: { options: '-o ada.zip' },
  listObjects: { ...BUCKET, query: '?limit=100' },
  getFolderSize: { ...BUCKET, query: '?prefix=2026/' },
  browseBucket: { ...BUCKET, query: '?prefix=2026/&sort=size&order=desc' },
  changeObject: { body: { metadata: { camera: 'X100' }, mime_type: 'image/jpeg' } },
  listBucketPoints: BUCKET,
  restoreBucket: { ...BUCKET, body: { point_id: '$POINT_ID', prefix: 'photos/', preview: true } },
  copyObject: { body: { name: 'copies/photo.jpg' } },
  moveObject: { body: { name: '2026/photo.jpg' } },
  restoreObject: { body: { version_id: '$VERSION_ID' } },
  beginUpload: { ...BUCKET, body: { name: '2026.zip' } },
  uploadPart: { path: { ...BUCKET.path, number: '1' }, form: { file: '@2026.zip.1' } },
  listUploadParts: BUCKET,
  completeUpload: { ...BUCKET, body: { parts: 1, size: 5 } },
  selectFiles: { ...BUCKET, body: { names: ['2026/may.jpg', '2026/june/'] } },
  downloadFolder: { ...BUCKET, query: '?prefix=2026/', options: '-o 2026.zip' },
  downloadObject: { options: '-o photo.jpg' },
  getCdnUrl: { query: '?expires_in=3600' },
  lendSshKey: { body: { public_key: SSH_KEY } },
  createVm: { body: { name: 'web', instance_type: 't2.micro' } },
  addSshKey: {
    body: {
      name: 'laptop',
      public_key: `${SSH_KEY} ada@laptop`,
    },
  },
  createVmSnapshot: { body: { name: 'before the upgrade' } },
  rebuildVm: { body: { image: 'tiny' } },
  changeVm: { body: { name: 'web-2', instance_type: 't2.small', disk_gb: 60 } },
  openConsole: {
    instead:
      'A console is a WebSocket, which curl does not speak. Get a ticket (createConsoleTicket) and open the ' +
      '`url` of its response with a WebSocket client.',
  },
  openVmTunnel: {
    instead:
      'A tunnel is a WebSocket, which curl does not speak: `cloudlet vm forward web 8080:80` opens one.',
  },
  openDatabaseTunnel: {
    instead: 'A tunnel is a WebSocket, which curl does not speak: `cloudlet db forward shop` opens one.',
  },
  publishVmPort: { body: { port: 80 } },
  watchUpdates: {
    instead:
      'Updates are a WebSocket, which curl does not speak: open the path with a WebSocket client and your key.',
  },
  adminFetchImage: { path: { short_name: 'debian-13' } },
  adminAddImage: { body: { name: 'Debian 12', url: 'https://images.example.com/debian-12.qcow2' } },
  adminUploadImage: { form: { file: '@debian-12.qcow2', name: 'Debian 12' } },
  adminCreateSetupLink: {
    instead:
      'Needs no key, and works only until an administrator exists. Run `bin/cloudlet admin setup-link` on the ' +
      'host of the cloud.',
  },
  createDatabase: { body: { name: 'shop' } },
  undeleteDatabase: { body: { name: 'shop' } },
  changeDatabase: { body: { size_limit_mb: 2048 } },
  queryDatabase: { body: { statement: 'SELECT 1 AS one' } },
  cancelDatabaseQuery: {
    instead:
      'Works only while the query runs: `curl -X POST …/api/databases/$DATABASE_ID/queries/report/cancel`.',
  },
  saveQuery: { body: { name: 'Totals by month', text: 'SELECT 1 AS one' } },
  deleteSavedQuery: {
    instead:
      'With an id of the list: `curl -X DELETE …/api/databases/$DATABASE_ID/saved-queries/$SAVED_QUERY_ID`.',
  },
  explainDatabaseQuery: { body: { statement: 'SELECT 1 AS one' } },
  readDatabaseRows: {
    body: { table: 'orders', filter: [{ column: 'total', operator: 'gt', value: 10 }], count: true },
  },
  changeDatabaseRows: { body: { table: 'orders', changes: [{ action: 'insert', values: { total: 12 } }] } },
  exportDatabaseRows: { query: '?table=orders&format=csv' },
  importDatabaseRows: { query: '?table=orders', form: { file: '@orders.csv' } },
  dumpDatabase: { options: '-o shop.db' },
  loadDatabase: { form: { file: '@shop.db' } },
  createRecoveryPoint: { query: '?wait=60' },
  verifyRecoveryPoint: { query: '?wait=60' },
  cancelRecoveryPoint: {
    instead:
      'Works only while the point is being created: `curl -X POST …/api/disaster-recovery/points/$POINT_ID/cancel`.',
  },
  confirmRecoveryKey: {
    instead:
      'Run `bin/cloudlet recovery key` on the host itself: it shows the key, and asks you to confirm it.',
  },
  createWebhook: { body: { url: 'https://hooks.example.com/cloudlet', events: ['vm.stopped'] } },
  changeWebhook: { body: { enabled: false } },
  rotateWebhookSecret: { body: { overlap_seconds: 3600 } },
  recoverWebhook: { body: { since: '2026-01-31 00:00:00' } },
  restoreAccount: {
    path: { account: 'admin' },
    body: { username: 'admin-then', email: 'admin-then@example.com', preview: true },
  },
  adminCreateAccount: { body: { username: 'grace', email: 'grace@example.com' } },
  adminAdjustCredits: { body: { amount: 50, reason: 'Welcome' } },
  adminRemoveAccount: { body: { reason: 'Has left the class' } },
  adminSuspendAccount: { body: { reason: 'Unpaid' } },
  adminChangeAccount: { body: { plan: 'free', expires_at: '2999-07-31 22:00:00' } },
  adminCreatePlan: { body: { name: 'pro', monthly_credits: 100, quotas: { vms: 20 } } },
  adminChangePlan: { ...PLAN, body: { monthly_credits: 200 } },
  adminDeletePlan: PLAN,
  getQuote: { query: '?resource_type=vm&instance_type=t2.micro' },
  setSpendCap: { body: { cap: 100, warn_percent: [50, 80] } },
  adminSetPrice: { body: { meter: 'egress', price: 0.01 } },
  adminDrainNode: {
    instead:
      'Works only in a cluster: `curl -X POST …/api/admin/nodes/$NODE_ID/drain`, or `cloudlet nodes drain`.',
  },
  adminResumeNode: {
    instead:
      'Works only in a cluster: `curl -X POST …/api/admin/nodes/$NODE_ID/resume`, or `cloudlet nodes resume`.',
  },
  adminForgetNode: {
    instead:
      'Works only in a cluster: `curl -X DELETE …/api/admin/nodes/$NODE_ID`, or `cloudlet nodes forget`.',
  },
};
