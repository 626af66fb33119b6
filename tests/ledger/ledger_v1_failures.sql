-- head 33:a010f7b0c8e6c5de17877bfdb17367411369f9e18eb4c7d06b136c0c0f568b95
PRAGMA application_id=1145656131;
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE answers (
  sequence INTEGER PRIMARY KEY,
  charge INTEGER NOT NULL UNIQUE,
  replay_key TEXT NOT NULL,
  payload BLOB NOT NULL
);
CREATE TABLE entries (
  sequence INTEGER PRIMARY KEY,
  time TEXT NOT NULL,
  kind TEXT NOT NULL,
  account TEXT NOT NULL,
  who TEXT NOT NULL,
  price TEXT NOT NULL,
  key TEXT NOT NULL,
  about INTEGER NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL
);
INSERT INTO "entries" VALUES(1,'2026-11-15T23:39:52.417+00:00','open','patients','owner','','',0,'{"account":{"budget":{"epsilon":"3/1"},"name":"patients","neighbours":"add_remove","salt":"ddac572d6efb7d58ebf8a245165dfac0d069c126869a2250305b1716c79cfbb3","unit":{"columns":["patient_id"],"name":"patient"}}}','69fba92980c47154c724814724c8cf28f075a0a8fcc4093700f6b7d34e30ecc7');
INSERT INTO "entries" VALUES(2,'2026-11-15T23:39:52.427+00:00','open','staff','owner','','',0,'{"account":{"budget":{"epsilon":"3/1"},"name":"staff","neighbours":"add_remove","salt":"25c20f073965baa3fc168a7a8f7f388625c9bba2ec09225f316da4da455e6d07","unit":{"columns":["patient_id"],"name":"patient"}}}','26074aa56a4e2a512529b4d5a1c5de654b373cfc32fa95066da9dd85cae39574');
INSERT INTO "entries" VALUES(3,'2026-11-15T23:39:52.431+00:00','open','guests','owner','','',0,'{"account":{"budget":{"epsilon":"3/1"},"name":"guests","neighbours":"add_remove","salt":"756d484a42ea02c1984db020fe0b91dfc7b393f3b2347f1339a3820c8fb64947","unit":{"columns":["patient_id"],"name":"patient"}}}','07dba85aea2b61e176fda1a4cb86a6cf5cec651147cf051d80f86d468f5e4be1');
INSERT INTO "entries" VALUES(4,'2026-11-15T23:39:52.434+00:00','appoint','','owner','','',0,'{"cap":null,"name":"sue","role":"steward"}','a461b7084c99c61d7cb98a2a45f6c26e420eb25f42667c556c33ba94e79c9ed6');
INSERT INTO "entries" VALUES(5,'2026-11-15T23:39:52.438+00:00','appoint','patients','owner','','',0,'{"cap":null,"name":"ana","role":"analyst"}','d96dbec28c733a26580f1f1b9d5662aa8a68426c6e0af5f22301f974d7f66a58');
INSERT INTO "entries" VALUES(6,'2026-11-15T23:39:52.442+00:00','appoint','patients','owner','','',0,'{"cap":null,"name":"ben","role":"analyst"}','632755798ec4f2742bf0172f8e7abcd4e4c6627ac78b015e9ea8bb8cbbeb50f7');
INSERT INTO "entries" VALUES(7,'2026-11-15T23:39:52.446+00:00','appoint','guests','owner','','',0,'{"cap":null,"name":"cid","role":"analyst"}','8fbb021662e86efb69c8a41048af306b31f418d0cce35ea77ae3e739366511da');
INSERT INTO "entries" VALUES(8,'2026-11-15T23:39:52.450+00:00','appoint','guests','owner','','',0,'{"cap":null,"name":"dan","role":"analyst"}','da24156958a711733ea45e494d037ac8e749edbf8f0c4e2cb324d8bcd041b292');
INSERT INTO "entries" VALUES(9,'2026-11-15T23:39:52.455+00:00','charge','patients','ana','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"29/10"}}','d9ddcd55bffd4b9e867eca20f54a2fdb2828b0b87b9569697694cda6a7d7062e');
INSERT INTO "entries" VALUES(10,'2026-11-15T23:39:52.458+00:00','fail','patients','ana','','',9,'{}','78d6a939ccfb28bf0a55930f85b25babb6af9cfdd612df6aa4c0ace085fac2c9');
INSERT INTO "entries" VALUES(11,'2026-11-15T23:39:52.462+00:00','charge','patients','ana','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"14/5"}}','d08dbcd9a4b3a90f683920031d88586145c8cc7e79996dae6e85b8af9c524618');
INSERT INTO "entries" VALUES(12,'2026-11-15T23:39:52.466+00:00','fail','patients','ana','','',11,'{}','ba1e9e70d878cecc2ff93182179493a578aad71bdf9e8b56316b42c17dd41e69');
INSERT INTO "entries" VALUES(13,'2026-11-15T23:39:52.471+00:00','charge','patients','ana','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"27/10"}}','7ab45bcb86861e26f22fdced83c2ca05027d75a4eddab34a471216755e0cbe00');
INSERT INTO "entries" VALUES(14,'2026-11-15T23:39:52.474+00:00','fail','patients','ana','','',13,'{}','4007a147bf7b1dd55362f27259556821dad51a1f57487c0fa44eb88227df742e');
INSERT INTO "entries" VALUES(15,'2026-11-15T23:39:52.478+00:00','unlock','patients','sue','','',0,'{"note":"a full disk"}','6e7285d821ad5e0d3d11d20e5336d0a693476b700a9122acbf5c592101bda482');
INSERT INTO "entries" VALUES(16,'2026-11-15T23:39:52.483+00:00','charge','patients','ana','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"13/5"}}','71c952abf2653cde6f160c952245eeb57db9607faafe200351b39808c673b256');
INSERT INTO "entries" VALUES(17,'2026-11-15T23:39:52.486+00:00','fail','patients','ana','','',16,'{}','20765eeca2493882c106369195b2fbb360b6652f924e4788b6a621c48953f749');
INSERT INTO "entries" VALUES(18,'2026-11-15T23:39:52.491+00:00','charge','patients','ana','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"5/2"}}','b15210526c6349e2847b68b46435a26ed2ff17785f47e4cd31a0a4bfbb5ba35c');
INSERT INTO "entries" VALUES(19,'2026-11-15T23:39:52.494+00:00','fail','patients','ana','','',18,'{}','99ff0f25e5e1a591be58809f5f17834b323d84f15bb285f877445af28402f582');
INSERT INTO "entries" VALUES(20,'2026-11-15T23:39:52.499+00:00','charge','patients','sue','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"12/5"}}','14c43578177457b76934330c6f3a7b29781fdb941474044c353c4aa3b78f539d');
INSERT INTO "entries" VALUES(21,'2026-11-15T23:39:52.502+00:00','fail','patients','sue','','',20,'{}','e5a974d52d9683e11d09d386882508b3a916ad173663f67271bc0ea2cfbeaca4');
INSERT INTO "entries" VALUES(22,'2026-11-15T23:39:52.506+00:00','charge','staff','eve','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"29/10"}}','afed5093e631726764a4496cb021ac183f5eaaa259bc3cce6f178d688b4e7b0d');
INSERT INTO "entries" VALUES(23,'2026-11-15T23:39:52.510+00:00','fail','staff','eve','','',22,'{}','46c1b02548bd2da6993bed5bc2d6cc38c4926a77db06960c3975c330243affee');
INSERT INTO "entries" VALUES(24,'2026-11-15T23:39:52.512+00:00','charge','staff','fay','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"14/5"}}','d27c04db59d2f0a66b6895a4ffb5217b018af8df056dbae3c153aab660597c64');
INSERT INTO "entries" VALUES(25,'2026-11-15T23:39:52.514+00:00','fail','staff','fay','','',24,'{}','acb97045b17da1de02ad8de9470b34ad8184708895146194e7b5d7e4bf57b3f6');
INSERT INTO "entries" VALUES(26,'2026-11-15T23:39:52.518+00:00','charge','staff','gil','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"27/10"}}','3ff606544880908b4392ffbbaed0bcbf76c6211b88ba077d10424c8fa88f5ee2');
INSERT INTO "entries" VALUES(27,'2026-11-15T23:39:52.522+00:00','fail','staff','gil','','',26,'{}','8e34ca416f799751f9fb0a72330045966d7992e9688168fd9fb4ac0bbb0f4df8');
INSERT INTO "entries" VALUES(28,'2026-11-15T23:39:52.527+00:00','charge','guests','cid','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"29/10"}}','5104d248cae7e0eb102341c13d037e8216706e748fca782aa22b3400d71ea7b0');
INSERT INTO "entries" VALUES(29,'2026-11-15T23:39:52.530+00:00','fail','guests','cid','','',28,'{}','3eddb8a110b3d706880e01ac1f4ff3932d8ff421f83c459060ff8b279319c2e2');
INSERT INTO "entries" VALUES(30,'2026-11-15T23:39:52.534+00:00','charge','guests','cid','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"14/5"}}','65f9055cab6298c08a5f18ff97487a58603691677a55670be63181f42e7be73b');
INSERT INTO "entries" VALUES(31,'2026-11-15T23:39:52.538+00:00','fail','guests','cid','','',30,'{}','26d7e69786e10f96840cf34eba71ee3d95c40a94177b1e74fef431c7de42ee22');
INSERT INTO "entries" VALUES(32,'2026-11-15T23:39:52.542+00:00','charge','guests','cid','{"pure":"1/10"}','',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"27/10"}}','da50e55d695fc537601ab4c6733766065b7af38385809a9f4ab8f16f183668bf');
INSERT INTO "entries" VALUES(33,'2026-11-15T23:39:52.546+00:00','fail','guests','cid','','',32,'{}','a010f7b0c8e6c5de17877bfdb17367411369f9e18eb4c7d06b136c0c0f568b95');
CREATE TABLE states (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  seal TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;
INSERT INTO "states" VALUES('account','guests','{"budget":{"epsilon":"3/1"},"name":"guests","neighbours":"add_remove","salt":"756d484a42ea02c1984db020fe0b91dfc7b393f3b2347f1339a3820c8fb64947","unit":{"columns":["patient_id"],"name":"patient"}}','6e7f7c8f5ed62484fe14f964e640bc87d134757d8cf3c3123ea72b1a5fce07de');
INSERT INTO "states" VALUES('account','patients','{"budget":{"epsilon":"3/1"},"name":"patients","neighbours":"add_remove","salt":"ddac572d6efb7d58ebf8a245165dfac0d069c126869a2250305b1716c79cfbb3","unit":{"columns":["patient_id"],"name":"patient"}}','2de67b5312460c901cb4759d6a2a94b7dd7623514fe1570c3797979b509be381');
INSERT INTO "states" VALUES('account','staff','{"budget":{"epsilon":"3/1"},"name":"staff","neighbours":"add_remove","salt":"25c20f073965baa3fc168a7a8f7f388625c9bba2ec09225f316da4da455e6d07","unit":{"columns":["patient_id"],"name":"patient"}}','2449cadddc67551cb2f7e6b413652e042bad56de1e8c15878cb0e626b58d3119');
INSERT INTO "states" VALUES('member','guests
cid','{"cap":null,"lifetime":{"pure":"3/10"},"period":1,"role":"analyst","spent":{"pure":"3/10"}}','93e0c3bd03491cf25a187db16e78561b3e9d774723e05530634ebc5328d427c4');
INSERT INTO "states" VALUES('member','guests
dan','{"cap":null,"lifetime":{"pure":"0/1"},"period":1,"role":"analyst","spent":{"pure":"0/1"}}','ff426ec87cf06429324676f6bc49d406776e3580224a3ce20acce1bcd7c29906');
INSERT INTO "states" VALUES('member','patients
ana','{"cap":null,"lifetime":{"pure":"1/2"},"period":1,"role":"analyst","spent":{"pure":"1/2"}}','ce57058c5bdb44868b3ba4bfe87dfcbfd0628c7525f74e2b638212978fa665cb');
INSERT INTO "states" VALUES('member','patients
ben','{"cap":null,"lifetime":{"pure":"0/1"},"period":1,"role":"analyst","spent":{"pure":"0/1"}}','77131aff1b2d8701dbdcc3a89fd38b258155d64b94425d1ea4927a0338d88fdf');
INSERT INTO "states" VALUES('member','patients
sue','{"cap":null,"lifetime":{"pure":"1/10"},"period":1,"role":null,"spent":{"pure":"1/10"}}','f7bbf74423b172d0920c85632acd5946c33e28efd4936505531cf59733b589d3');
INSERT INTO "states" VALUES('member','staff
eve','{"cap":null,"lifetime":{"pure":"1/10"},"period":1,"role":null,"spent":{"pure":"1/10"}}','cbe5ba84ef7bd0a59331fbb6d7b424cb499119aaca0aff853b8b80ab67a45ef0');
INSERT INTO "states" VALUES('member','staff
fay','{"cap":null,"lifetime":{"pure":"1/10"},"period":1,"role":null,"spent":{"pure":"1/10"}}','e3e3d6b60145eb65dda3530fe7d083925d17af1e45dc44279fc92a9b37e1c63c');
INSERT INTO "states" VALUES('member','staff
gil','{"cap":null,"lifetime":{"pure":"1/10"},"period":1,"role":null,"spent":{"pure":"1/10"}}','09805cdbdc13edf5950ab042d4309c5e3e8e7b98c7975d746610975fb1b1f0ba');
INSERT INTO "states" VALUES('role','sue','{"role":"steward"}','ea7b55c644c2d5bfad77a28d408af95efd6abf561a8d2b30051e045431347626');
INSERT INTO "states" VALUES('standing','guests','{"budget":{"epsilon":"3/1"},"failures":3,"lifetime":{"pure":"3/10"},"listed":true,"period":1,"spent":{"pure":"3/10"}}','3e1a89b015a258bd14a32cf512b83f7171d4dfc3e5a5ab5b336162af2ed3e6bb');
INSERT INTO "states" VALUES('standing','patients','{"budget":{"epsilon":"3/1"},"failures":3,"lifetime":{"pure":"3/5"},"listed":true,"period":1,"spent":{"pure":"3/5"}}','8aef6a06ab860a61d9365be1d13a4dd141c1b62d2162c0f663bb8650a9f4e66a');
INSERT INTO "states" VALUES('standing','staff','{"budget":{"epsilon":"3/1"},"failures":3,"lifetime":{"pure":"3/10"},"listed":false,"period":1,"spent":{"pure":"3/10"}}','140237fcb1808038923906a1d48f5fc96cdde0e17beeec71697f00c0a66d4e49');
CREATE UNIQUE INDEX entries_by_key ON entries (who, key) WHERE key <> '';
CREATE UNIQUE INDEX entries_by_charge ON entries (about) WHERE about > 0;
CREATE INDEX answers_by_replay_key ON answers (replay_key);
CREATE TRIGGER entries_only_at_the_end BEFORE INSERT ON entries
WHEN NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM entries)
  OR (NEW.key <> '' AND EXISTS (SELECT 1 FROM entries WHERE who = NEW.who AND key = NEW.key AND key <> ''))
  OR (NEW.about > 0 AND EXISTS (SELECT 1 FROM entries WHERE about = NEW.about AND about > 0))
BEGIN SELECT RAISE(ABORT, 'entries are added at the end'); END;
CREATE TRIGGER answers_once BEFORE INSERT ON answers
WHEN EXISTS (SELECT 1 FROM answers WHERE sequence = NEW.sequence OR charge = NEW.charge)
BEGIN SELECT RAISE(ABORT, 'a charge has one answer'); END;
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are kept for ever'); END;
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are kept for ever'); END;
CREATE TRIGGER answers_no_update BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'answers are kept for ever'); END;
CREATE TRIGGER answers_no_delete BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'answers are kept for ever'); END;
CREATE TRIGGER states_no_delete BEFORE DELETE ON states BEGIN SELECT RAISE(ABORT, 'states are kept for ever'); END;
COMMIT;
