/** The operations of recovery, for the test of every permission, each with a body that it would accept. */
export const RECOVERY_OPERATIONS = {
  createRecoveryPoint: {},
  listRecoveryPoints: {},
  getRecoveryPoint: {},
  cancelRecoveryPoint: {},
  verifyRecoveryPoint: {},
  drillRecoveryPoint: {},
  deleteRecoveryPoint: {},
  undeleteRecoveryPoint: {},
  checkRecoveryTarget: {},
  listRemovableRecoveryFiles: {},
  getRecoverySchedule: {},
  updateRecoverySchedule: { json: {} },
  previewRecoveryRetention: {},
  applyRecoveryRetention: {},
  showRecoveryKey: {},
  confirmRecoveryKey: { json: { recovery_key: 'clr-' } },
};
