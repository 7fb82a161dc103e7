/** Entries of the navigation, in this order. */
import {
  ArchiveBoxIcon,
  BoltIcon,
  CircleStackIcon,
  Cog6ToothIcon,
  CreditCardIcon,
  HomeIcon,
  LifebuoyIcon,
  ServerIcon,
  UserCircleIcon,
} from '@heroicons/react/24/outline';
import { text } from '../texts/text.ts';

const { areas } = text.shell;

export const AREAS = [
  { to: '/', label: areas.overview, icon: HomeIcon, forAdmins: false },
  { to: '/storage', label: areas.storage, icon: ArchiveBoxIcon, forAdmins: false },
  { to: '/machines', label: areas.machines, icon: ServerIcon, forAdmins: false },
  { to: '/databases', label: areas.databases, icon: CircleStackIcon, forAdmins: false },
  { to: '/billing', label: areas.billing, icon: CreditCardIcon, forAdmins: false },
  { to: '/webhooks', label: text.webhooks.title, icon: BoltIcon, forAdmins: false },
  { to: '/recovery', label: areas.recovery, icon: LifebuoyIcon, forAdmins: true },
  { to: '/administration', label: areas.administration, icon: Cog6ToothIcon, forAdmins: true },
  { to: '/account', label: areas.account, icon: UserCircleIcon, forAdmins: false },
] as const;
