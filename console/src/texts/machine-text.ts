/** The texts inside machines, loaded with their pages. */
import { machine } from './en/machine.ts';

export const machineText = machine;
