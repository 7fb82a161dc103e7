/** The texts of the recovery schedule, loaded with its page. */
import { schedule } from '../en/pages/schedule.ts';

export const scheduleText = schedule;
