/** Mistyped names: of settings and members in the server, of commands and resources in the client. */
export { slipsBetween } from './slips.ts';
