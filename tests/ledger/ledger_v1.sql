-- head 34:295b9e46f0c4e80430def395d5f9dfc6af7e00c976adb253dbb5eb9b5ad851fb
PRAGMA application_id=1145656131;
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE answers (
  sequence INTEGER PRIMARY KEY,
  charge INTEGER NOT NULL UNIQUE,
  replay_key TEXT NOT NULL,
  payload BLOB NOT NULL
);
INSERT INTO "answers" VALUES(6,5,'visits@2026-11/count',X'00616E73776572FF');
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
INSERT INTO "entries" VALUES(1,'2026-11-15T04:14:09.006+00:00','open','patients','owner','','',0,'{"account":{"budget":{"epsilon":"1/1"},"name":"patients","neighbours":"add_remove","salt":"5ae21a469f2dd47c587af5beef2d8000598f9fb548183a4ff4226a4fed8ad9a8","unit":{"columns":["patient_id"],"name":"patient"}}}','1b7be057dfbbbd261317ab23390651ae511f2aa16d7f9230f6fb5a33949fd14e');
INSERT INTO "entries" VALUES(2,'2026-11-15T04:14:09.015+00:00','attach','patients','owner','','',0,'{"declaration":"{\"age\":[0,120]}","table":"visits","version":"2026-11"}','fe6db4663143550122fd75b01b7e646ec514dcd1329088569df7e8a10cab4d62');
INSERT INTO "entries" VALUES(3,'2026-11-15T04:14:09.019+00:00','appoint','patients','owner','','',0,'{"cap":{"epsilon":"1/2"},"name":"ana","role":"analyst"}','b5faf249f2f591a7abee757c637d123ec82076139716965d4cecef06dfb91603');
INSERT INTO "entries" VALUES(4,'2026-11-15T04:14:09.023+00:00','appoint','','owner','','',0,'{"cap":null,"name":"sue","role":"steward"}','6aad85988c0919714b1316bd89d21e88fe2481020b2111fcca97bf4c9716d511');
INSERT INTO "entries" VALUES(5,'2026-11-15T04:14:09.028+00:00','charge','patients','ana','{"pure":"1/10"}','k1',0,'{"cost":{"epsilon":"1/10"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"count\":\"visits\"}","remaining":{"epsilon":"9/10"},"request":"bf4c80bb1fa7a81f15b7db9d0581f2a8ca8dcf6b7c0d50b1732ebc2adf12b695"}','d02b63bd86671d50cd79ea1c1365621da88efd89e7a0e6416eec32136168c6e6');
INSERT INTO "entries" VALUES(6,'2026-11-15T04:14:09.031+00:00','answer','patients','ana','','',5,'{"digest":"3e0a3f028cd94c88b2325c601295ea2163cfc0826cc35edff25e86bda217407c","replay_key":"visits@2026-11/count"}','cdd37bbcff1f5bd0e9244331db0f195d7cb954ef288ce7ba51120fe925c5b2ea');
INSERT INTO "entries" VALUES(7,'2026-11-15T04:14:09.036+00:00','charge','patients','sue','{"pure":"1/3"}','',0,'{"cost":{"epsilon":"1/3"},"event":"{\"epsilon\":\"1/3\",\"kind\":\"pure\",\"version\":1}","joined":1,"question":"{\"sum\":\"age\"}","remaining":{"epsilon":"17/30"}}','a9063dbef4956d1e858ed65fb40feb6664ef6452a1ed5131019c8334a5e80c04');
INSERT INTO "entries" VALUES(8,'2026-11-15T04:14:09.039+00:00','fail','patients','sue','','',7,'{}','35dd1d49a41687163b310855c2996519e60801fbc20e006af445e588610b0688');
INSERT INTO "entries" VALUES(9,'2026-11-15T04:14:09.043+00:00','unlock','patients','sue','','',0,'{"note":"a full disk"}','9c301a4104bb044952468545500c17e4996e1597693f3d390e3ee2d298a53346');
INSERT INTO "entries" VALUES(10,'2026-11-15T04:14:09.047+00:00','amend','patients','sue','','',0,'{"budget":{"epsilon":"2/1"},"note":"agreed by the board"}','d1aa7b80c423df9b2ffad6990799dd30c615f784de366b4dc9dcffac5978e6ab');
INSERT INTO "entries" VALUES(11,'2026-11-15T04:14:09.052+00:00','renew','patients','sue','','',0,'{"budget":{"epsilon":"2/1"},"note":"a new year"}','fcaf4faed8fa5fd027990fd81decf7593ca728e1d3cfc8cc504ac99e2bf66534');
INSERT INTO "entries" VALUES(12,'2026-11-15T04:14:09.056+00:00','charge','patients','ana','{"pure":"1/20"}','',0,'{"cost":{"epsilon":"1/20"},"event":"{\"kind\":\"laplace\",\"noise_multiplier\":\"20/1\",\"version\":1}","joined":1,"question":"{}","remaining":{"epsilon":"39/20"}}','44dbd07b98b67214ee09ae85f602959a7b6de34d4b8fc15091c21cd225233663');
INSERT INTO "entries" VALUES(13,'2026-11-15T04:14:09.059+00:00','charge','patients','ana','{"pure":"1/20"}','',0,'{"cost":{"epsilon":"1/20"},"event":"{\"kind\":\"laplace\",\"noise_multiplier\":\"20/1\",\"version\":1}","joined":1,"question":"{}","remaining":{"epsilon":"19/10"}}','b68e35ac57bb667214f3ef134214d892fe653f473ed58a4d930a4aa9f418f970');
INSERT INTO "entries" VALUES(14,'2026-11-15T04:14:09.063+00:00','charge','patients','ana','{"pure":"1/20"}','',0,'{"cost":{"epsilon":"1/20"},"event":"{\"kind\":\"laplace\",\"noise_multiplier\":\"20/1\",\"version\":1}","joined":1,"question":"{}","remaining":{"epsilon":"37/20"}}','30a269e9251e0b91a131b84437ea36be173533cb5d95226452cef8ec1ff51940');
INSERT INTO "entries" VALUES(15,'2026-11-15T04:14:09.067+00:00','charge','patients','ana','{"pure":"1/20"}','',0,'{"cost":{"epsilon":"1/20"},"event":"{\"kind\":\"laplace\",\"noise_multiplier\":\"20/1\",\"version\":1}","joined":1,"question":"{}","remaining":{"epsilon":"9/5"}}','e8339ac53da7a5eac8162347fb6e2d8afb7d0f3b9f496300d3d9429b01be92b6');
INSERT INTO "entries" VALUES(16,'2026-11-15T04:14:09.071+00:00','charge','patients','ana','{"pure":"1/20"}','',0,'{"cost":{"epsilon":"1/20"},"event":"{\"kind\":\"laplace\",\"noise_multiplier\":\"20/1\",\"version\":1}","joined":1,"question":"{}","remaining":{"epsilon":"7/4"}}','efe73d92032f724365ad642530096a1c0b747fe64674d298422747e321463f90');
INSERT INTO "entries" VALUES(17,'2026-11-15T04:14:09.093+00:00','open','staff','owner','','',0,'{"account":{"budget":{"delta":"1/1000000","rho":"1/2"},"name":"staff","neighbours":"replace","salt":"e2890c4bf94d175e3d0d0a8dad23a6c2683221aff9fe86b015d7b40da0c47d71","unit":{"columns":["id"],"name":"nurse"}}}','9356111252c01038f7ded4a1b3fa3d2d653227a495586b655777b3b6de9e6b60');
INSERT INTO "entries" VALUES(18,'2026-11-15T04:14:09.120+00:00','open','households','owner','','',0,'{"account":{"budget":{"delta":"1/1000000","epsilon":"3/1"},"name":"households","neighbours":"add_remove","salt":"713a69b6b38de52a8ec003e1cd09fbf101955d96388ca9daec5af81b39b23c74","unit":{"columns":["street","number"],"name":"household"}}}','a97ea4dfb0dcb09377d1e8f0849137a0ae2130ad407e9d9a9d05e077718eb4f9');
INSERT INTO "entries" VALUES(19,'2026-11-15T04:14:09.125+00:00','charge','households','ana','{"approximate":null,"concentrated":"1/200 0/1","pure":null}','',0,'{"cost":{"delta":"0/1","rho":"1/200"},"event":"{\"kind\":\"gaussian\",\"noise_multiplier\":\"10/1\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"1/4000000","rho":"9136546969069519/56294995342131200"}}','8767ee16dc2455024d7aa765fe6309bf36422da0536b5389763e5c237df980e6');
INSERT INTO "entries" VALUES(20,'2026-11-15T04:14:09.125+00:00','charge','staff','ana','{"concentrated":"1/200 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"1/200"},"event":"{\"kind\":\"gaussian\",\"noise_multiplier\":\"10/1\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"1/1000000","rho":"99/200"}}','0d746adff4a15620f8a3107cdc81d1ffa4fb093fd7723fb55788eebf1712514b');
INSERT INTO "entries" VALUES(21,'2026-11-15T04:14:09.132+00:00','charge','households','ana','{"approximate":"1/20 0/1","concentrated":"1/800 0/1","pure":"1/20"}','',0,'{"cost":{"delta":"0/1","rho":"1/800"},"event":"{\"kind\":\"discrete_laplace\",\"scale\":\"20/1\",\"sensitivity\":1,\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"1/4000000","rho":"1813235644978371/11258999068426240"}}','bd6caa7dc869c1fb61b07871a11341041b1e6f32b61262007fbb29038c8e8c59');
INSERT INTO "entries" VALUES(22,'2026-11-15T04:14:09.133+00:00','charge','staff','ana','{"concentrated":"1/800 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"1/800"},"event":"{\"kind\":\"discrete_laplace\",\"scale\":\"20/1\",\"sensitivity\":1,\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"1/1000000","rho":"79/160"}}','b2ec56ce7c901bbd5be847ce6e2db73ecc6ca6dcbe0b3edae861bfac9d796cba');
INSERT INTO "entries" VALUES(23,'2026-11-15T04:14:09.134+00:00','charge','households','ana','{"approximate":"1/100 1/1000000000","concentrated":"1/20000 1/1000000000","pure":null}','',0,'{"cost":{"delta":"1/1000000000","rho":"1/20000"},"event":"{\"delta\":\"1/1000000000\",\"epsilon\":\"1/100\",\"kind\":\"approx\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"249/1000000000","rho":"226584086878118711/1407374883553280000"}}','d7e34834a0bc89eef4c0efa8e021135b2c2a8d53d06518596f11c7b38f099bb4');
INSERT INTO "entries" VALUES(24,'2026-11-15T04:14:09.139+00:00','charge','staff','ana','{"concentrated":"1/20000 1/1000000000"}','',0,'{"cost":{"delta":"1/1000000000","rho":"1/20000"},"event":"{\"delta\":\"1/1000000000\",\"epsilon\":\"1/100\",\"kind\":\"approx\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"999/1000000000","rho":"4937/10000"}}','af7952c0c85bfb1d293d4f9ac2bd74c80f78a5a0bc6c0902a62075378005f41e');
INSERT INTO "entries" VALUES(25,'2026-11-15T04:14:09.142+00:00','charge','households','ana','{"approximate":"1/10 0/1","concentrated":"1/800 0/1","pure":"1/10"}','',0,'{"cost":{"delta":"0/1","rho":"1/800"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"bounded_range\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"249/1000000000","rho":"224824868273677111/1407374883553280000"}}','6a4f3a2f8900ba344109a9cdbaf6d3e70383df1bab9ebace7a4ef440e420941a');
INSERT INTO "entries" VALUES(26,'2026-11-15T04:14:09.143+00:00','charge','staff','ana','{"concentrated":"1/800 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"1/800"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"bounded_range\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"999/1000000000","rho":"9849/20000"}}','72eed5ecb0a9567c018262c254495bd15f8f141bcf06ce1b2ab1ea27189d11f3');
INSERT INTO "entries" VALUES(27,'2026-11-15T04:14:09.148+00:00','charge','households','ana','{"approximate":"1/10 0/1","concentrated":"1/200 0/1","pure":"1/10"}','',0,'{"cost":{"delta":"0/1","rho":"1/200"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"randomized_response\",\"options\":2,\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"249/1000000000","rho":"217787993855910711/1407374883553280000"}}','09ae46364f67fa41cc69473aecbe7c2194d59faf48ffcaf051410d02574a93b3');
INSERT INTO "entries" VALUES(28,'2026-11-15T04:14:09.149+00:00','charge','staff','ana','{"concentrated":"1/200 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"1/200"},"event":"{\"epsilon\":\"1/10\",\"kind\":\"randomized_response\",\"options\":2,\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"999/1000000000","rho":"9749/20000"}}','a9051c5940f20f51b265b9c735a9a99678882001b4d9c83740c8bf771b78ca3d');
INSERT INTO "entries" VALUES(29,'2026-11-15T04:14:09.156+00:00','charge','households','ana','{"approximate":null,"concentrated":"1/450 0/1","pure":null}','',0,'{"cost":{"delta":"0/1","rho":"1/450"},"event":"{\"dimension\":1,\"kind\":\"discrete_gaussian\",\"sensitivity\":\"2/1\",\"sigma\":\"30/1\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"249/1000000000","rho":"1931944447032130799/12666373951979520000"}}','1593f67235b40159eb282721e1591b4e084c9c1d0788576792f4d00e141b308f');
INSERT INTO "entries" VALUES(30,'2026-11-15T04:14:09.157+00:00','charge','staff','ana','{"concentrated":"1/450 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"1/450"},"event":"{\"dimension\":1,\"kind\":\"discrete_gaussian\",\"sensitivity\":\"2/1\",\"sigma\":\"30/1\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"999/1000000000","rho":"87341/180000"}}','5de47153141eaae6856ef76868449e09ac373074dbb3c8427f6e5c5a3c62ed5c');
INSERT INTO "entries" VALUES(31,'2026-11-15T04:14:09.164+00:00','charge','households','ana','{"approximate":null,"concentrated":"3/1000 0/1","pure":null}','',0,'{"cost":{"delta":"0/1","rho":"3/1000"},"event":"{\"count\":3,\"event\":{\"delta\":\"0/1\",\"kind\":\"concentrated\",\"rho\":\"1/1000\"},\"kind\":\"repeated\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"249/1000000000","rho":"1893945325176192239/12666373951979520000"}}','172a47f1d4b7bf1726dac3b6f1b3870163b0aae580a40af9b60f450ca34d7dcc');
INSERT INTO "entries" VALUES(32,'2026-11-15T04:14:09.165+00:00','charge','staff','ana','{"concentrated":"3/1000 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"3/1000"},"event":"{\"count\":3,\"event\":{\"delta\":\"0/1\",\"kind\":\"concentrated\",\"rho\":\"1/1000\"},\"kind\":\"repeated\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"999/1000000000","rho":"86801/180000"}}','d7e59ae6b81ba5c8df56432b38eb0623563a656aee59796e0635061bc0b0207f');
INSERT INTO "entries" VALUES(33,'2026-11-15T04:14:09.168+00:00','charge','households','ana','{"approximate":null,"concentrated":"65/3969 0/1","pure":null}','',0,'{"cost":{"delta":"0/1","rho":"65/3969"},"event":"{\"events\":[{\"epsilon\":\"1/7\",\"kind\":\"pure\"},{\"kind\":\"gaussian\",\"noise_multiplier\":\"9/1\"}],\"kind\":\"composed\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"249/1000000000","rho":"743750520971737577399/5585870912822968320000"}}','3e99e66490e88472fec7f3ea2de7151370a03b5fd230a0ef640535562883fc4c');
INSERT INTO "entries" VALUES(34,'2026-11-15T04:14:09.168+00:00','charge','staff','ana','{"concentrated":"65/3969 0/1"}','',0,'{"cost":{"delta":"0/1","rho":"65/3969"},"event":"{\"events\":[{\"epsilon\":\"1/7\",\"kind\":\"pure\"},{\"kind\":\"gaussian\",\"noise_multiplier\":\"9/1\"}],\"kind\":\"composed\",\"version\":1}","joined":2,"question":"{\"\u00fc\":\"\u00e9\"}","remaining":{"delta":"999/1000000000","rho":"36979241/79380000"}}','295b9e46f0c4e80430def395d5f9dfc6af7e00c976adb253dbb5eb9b5ad851fb');
CREATE TABLE states (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  seal TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;
INSERT INTO "states" VALUES('account','households','{"budget":{"delta":"1/1000000","epsilon":"3/1"},"name":"households","neighbours":"add_remove","salt":"713a69b6b38de52a8ec003e1cd09fbf101955d96388ca9daec5af81b39b23c74","unit":{"columns":["street","number"],"name":"household"}}','4e7eaf5c0d4cb61dd0f1ee7f4e6e0e8d1913119996a000c0bb9f1a91f5a0ad9a');
INSERT INTO "states" VALUES('account','patients','{"budget":{"epsilon":"1/1"},"name":"patients","neighbours":"add_remove","salt":"5ae21a469f2dd47c587af5beef2d8000598f9fb548183a4ff4226a4fed8ad9a8","unit":{"columns":["patient_id"],"name":"patient"}}','ab33bab2484bb5a1e3537c816abefab0efe19d577858bf94572a7b3c84c318c4');
INSERT INTO "states" VALUES('account','staff','{"budget":{"delta":"1/1000000","rho":"1/2"},"name":"staff","neighbours":"replace","salt":"e2890c4bf94d175e3d0d0a8dad23a6c2683221aff9fe86b015d7b40da0c47d71","unit":{"columns":["id"],"name":"nurse"}}','5a1828ac1e8447e4b57297f6059c0c0e0761217141439d02a1161306fa099821');
INSERT INTO "states" VALUES('member','households
ana','{"cap":null,"lifetime":{"approximate":null,"concentrated":"2710759/79380000 1/1000000000","pure":null},"period":1,"role":null,"spent":{"approximate":null,"concentrated":"2710759/79380000 1/1000000000","pure":null}}','02b29199b93e49ed4e4134a9c7c2afd04f30831f6149b03bfa557237fde549ae');
INSERT INTO "states" VALUES('member','patients
ana','{"cap":{"epsilon":"1/2"},"lifetime":{"pure":"7/20"},"period":2,"role":"analyst","spent":{"pure":"1/4"}}','cfeb4f30a58ad95c1766a2abb92339996d43a252054d1dab01122f38bf667ea9');
INSERT INTO "states" VALUES('member','patients
sue','{"cap":null,"lifetime":{"pure":"1/3"},"period":1,"role":null,"spent":{"pure":"1/3"}}','b7df69c71bd2dadb5ed723c0bbf35ddb61eb0d31387dbc3053167896c4fcb3b4');
INSERT INTO "states" VALUES('member','staff
ana','{"cap":null,"lifetime":{"concentrated":"2710759/79380000 1/1000000000"},"period":1,"role":null,"spent":{"concentrated":"2710759/79380000 1/1000000000"}}','cc06151429f7b1aefa385e870a263b0d1d866e2b182671ed70580ee82afab197');
INSERT INTO "states" VALUES('role','sue','{"role":"steward"}','ea7b55c644c2d5bfad77a28d408af95efd6abf561a8d2b30051e045431347626');
INSERT INTO "states" VALUES('standing','households','{"budget":{"delta":"1/1000000","epsilon":"3/1"},"failures":0,"lifetime":{"approximate":null,"concentrated":"2710759/79380000 1/1000000000","pure":null},"listed":false,"period":1,"spent":{"approximate":null,"concentrated":"2710759/79380000 1/1000000000","pure":null}}','fab456782c3fb81a2d20096b54918f0ca7038dee6da15e67dbf37f5c0c2a5449');
INSERT INTO "states" VALUES('standing','patients','{"budget":{"epsilon":"2/1"},"failures":0,"lifetime":{"pure":"41/60"},"listed":true,"period":2,"spent":{"pure":"1/4"}}','bab2766447af4c1160d692fbaf676df4a087251ce5041d61451fb7b325fe85fa');
INSERT INTO "states" VALUES('standing','staff','{"budget":{"delta":"1/1000000","rho":"1/2"},"failures":0,"lifetime":{"concentrated":"2710759/79380000 1/1000000000"},"listed":false,"period":1,"spent":{"concentrated":"2710759/79380000 1/1000000000"}}','f0242e7a5c3c93f08ad2ffdc589f62d8943113573d50eb2ad5d37b273bca5b3c');
INSERT INTO "states" VALUES('table','visits','{"account":"patients","declaration":"{\"age\":[0,120]}","versions":["2026-11"]}','94b75c575967363b84c42e5695216b3b134d8fa5fbe7f6415953006532d7fa32');
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
