/** The one way to the cloud: the session cookie says who calls. */
import { createCloud } from '../../sdk/index.ts';

export const cloud = createCloud();
